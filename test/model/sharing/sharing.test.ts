/**
 * Breadth-first searches of a model of the gate and the slots of a shared name: every order of events. What is proven of
 * one lease is assumed: a name has one holder, whose claim waits in a queue before, and ends only when its client does
 * not rely on it. Requests and answers may take any time. Clients die, gates are broken or expire, slots are lost while a
 * call collects them, and withdrawals are never answered.
 */
import { expect, test } from 'vitest'
import { isFull } from '../../tier.ts'
import { besideWriter, type Side } from './marks.ts'
import { type Demand, type Faults, OURS, type Plan, type Rules } from './model.ts'
import { search } from './search.ts'
import { overcrowded } from './votes.ts'

const one: Demand = { slots: [0, 1], want: 1, waits: true }
const two: Demand = { slots: [0, 1], want: 2, waits: true }
const tryOne: Demand = { ...one, waits: false }
const tryTwo: Demand = { ...two, waits: false }
/** Slot 1 is the only reader slot. */
const reader: Demand = { slots: [1], want: 1, waits: true }
const tryReader: Demand = { ...reader, waits: false }
const writer: Demand = { ...two, isAlone: true }

const oneInOneStep: Demand = { ...one, inOneStep: true }
const readerInOneStep: Demand = { ...reader, inOneStep: true }

const none: Faults = { crash: 0, break: 0, loss: 0, slotLoss: 0, unanswered: 0, forgotten: 0, copy: 0 }
const base = { rules: OURS, slots: 2 }

const crowds: Readonly<Record<string, readonly Demand[]>> = {
  'three single permits': [one, one, one],
  'two calls for two permits and one for one': [two, two, one],
  'three calls for two permits': [two, two, two],
  'calls for two permits and for one, and a try': [two, one, tryOne],
  'two calls for two permits, and a try of two': [two, two, tryTwo],
  'two writers and a reader': [writer, writer, reader],
  'a writer, a reader and a try of a reader': [writer, reader, tryReader],
  'three single permits in one step': [oneInOneStep, oneInOneStep, oneInOneStep],
  'one permit in one step, one through the gate, and a call for two': [oneInOneStep, one, two],
  'a writer, a reader in one step and a try of a reader': [writer, readerInOneStep, tryReader],
}

const faults: Readonly<Record<string, Faults>> = {
  'crashes and broken gates': { ...none, crash: 1, break: 1 },
  'gates that expire and withdrawals without an answer': { ...none, loss: 1, forgotten: 1 },
  'lost slots and lost gates': { ...none, slotLoss: 1, loss: 1 },
  'shortcuts without an answer and broken gates': { ...none, unanswered: 1, break: 1 },
  'copies that come late and gates that expire': { ...none, copy: 1, loss: 1 },
}

// Each crowd with one of the faults, in turn; in the full tier with each of them.
const plans = Object.entries(crowds).flatMap(([crowd, clients], turn) =>
  Object.entries(faults)
    .filter((_, index) => isFull || index === turn % 5)
    .map(([what, each]) => [crowd, what, { ...base, clients, faults: each }] as const),
)

test.each(plans)('%s, with %s: no slot has two holders, no try passes, everybody ends', (_crowd, _what, plan) => {
  const { violation, states } = search(plan)
  expect(violation).toBeUndefined()
  expect(states).toBeGreaterThan(1_000)
})

const variants: readonly [string, keyof Rules, Omit<Plan, 'rules'>, RegExp][] = [
  [
    'a try that ignores the gate passes a writer',
    'tryTakesGate',
    { slots: 2, clients: [writer, writer, tryReader], faults: { ...none, crash: 1 } },
    /came before a client that waited/,
  ],
  [
    'work that goes on after the gate was lost makes a deadlock of two calls for two permits',
    'lossWithdraws',
    { slots: 2, clients: [two, two], faults: { ...none, loss: 1 } },
    /waits for ever/,
  ],
  [
    'a shortcut that ignores the gate passes a writer',
    'shortcutLooksAtGate',
    { slots: 2, clients: [writer, writer, tryReader], faults: { ...none, crash: 1 } },
    /came before a client that waited/,
  ],
  [
    'a shortcut that leaves claims behind blocks the others',
    'shortcutWithdraws',
    { slots: 2, clients: [two, one], faults: { ...none, unanswered: 1 } },
    /waits for ever/,
  ],
  [
    'a copy of a granted request that looks for a slot again ends the one that is held',
    'copyFindsGrant',
    { slots: 2, clients: [oneInOneStep, oneInOneStep, oneInOneStep], faults: { ...none, copy: 1 } },
    /is held by/,
  ],
  [
    'a granted request that still waits for another slot, because its gate was lost before, gets both',
    'grantLeaves',
    { slots: 2, clients: [oneInOneStep, oneInOneStep, oneInOneStep], faults: { ...none, loss: 1 } },
    /is held by/,
  ],
  [
    'a request that waits for slots without the gate makes a deadlock with a call for two permits',
    'lossLeaves',
    { slots: 2, clients: [oneInOneStep, one, two], faults: { ...none, break: 1 } },
    /waits for ever/,
  ],
  [
    'a slot that is released twice has two holders',
    'releaseById',
    { slots: 2, clients: [one, one, one], faults: none },
    /is held by/,
  ],
]

test.each(variants)('%s', (_, rule, plan, caught) => {
  const { violation } = search({ ...plan, rules: { ...OURS, [rule]: false } })
  expect(violation?.at(-1)).toMatch(caught)
  expect(search({ ...plan, rules: OURS }).violation).toBeUndefined()
})

test('a writer that takes one slot less holds beside a reader', () => {
  const found = (want: number): string | undefined =>
    search({ ...base, clients: [{ ...writer, want }, reader], faults: none }).violation?.at(-1)
  expect(found(2)).toBeUndefined()
  expect(found(1)).toMatch(/must be alone/)
})

test('votes for any permit instead of a slot let three hold, with three servers and a limit of 2', () => {
  expect(overcrowded({ servers: 3, clients: 3, limit: 2, perSlot: false })?.at(-1)).toBe(
    '0, 1, 2 hold, with a limit of 2',
  )
  expect(overcrowded({ servers: 3, clients: 3, limit: 2, perSlot: true })).toBeUndefined()
})

test('a reader that shows no token reads before and after a write of a paused writer', () => {
  const crowdsOfSides: readonly (readonly Side[])[] = [
    ['writer', 'reader'],
    ['writer', 'reader', 'reader'],
    ['writer', 'writer', 'reader'],
  ]
  for (const sides of crowdsOfSides) {
    expect(besideWriter(sides, true)).toBeUndefined()
    expect(besideWriter(sides, false)?.at(-1)).toMatch(/came between two uses of the (reader|writer)/)
  }
})
