import { expect, test } from 'vitest'
import type { Busy, Grant } from '../../src/contract/store.ts'
import type { Asker } from '../../src/stores/rules/name.ts'
import type { Answer } from './allowed.ts'
import { POSTGRES } from './differ.ts'
import type { Op } from './op.ts'
import { States } from './states.ts'
import type { Sent } from './together.ts'

const EXACT = { precision: 2, lasts: (ms: number) => ms, ends: (ms: number) => ms }

function asker(id: string): Asker {
  return { id, owner: id, note: '', ttl: 30_000, limit: 1, units: 1, grace: 100, queue: true }
}

function sent(at: number, op: Op, is: Answer): Sent {
  const watching = { watched: new Set<string>(), kept: new Set<string>() }
  return { op, window: { sent: at, received: at + 10 }, answer: { is }, watching, until: at + 5_000 }
}

function granted(at: number, id: string, token: bigint): Sent {
  return sent(at, { verb: 'acquire', asker: asker(id) }, { held: true, token, ttl: 30_000 } satisfies Grant)
}

function refused(at: number, id: string, by: string, token: bigint): Sent {
  const holder = { name: 'a', state: 'held', owner: by, note: '', token, remaining: 1_000 } as const
  const busy: Busy = { held: false, retryAfter: 1_000, ahead: 0, holder }
  return sent(at, { verb: 'acquire', asker: asker(id) }, busy)
}

const broken = sent(100, { verb: 'break' }, 2n)
const released = sent(200, { verb: 'release', id: 'second' }, 'released')

test('a refusal may show a holder that ended while the claim joined the queue, behind a later grant', () => {
  const crossing = [refused(100, 'waiter', 'first', 1n), broken, granted(100, 'second', 3n)]
  const oneStep = new States(EXACT)
  oneStep.add([granted(0, 'first', 1n)])
  expect(oneStep.add(crossing)).toBeDefined()

  const states = new States({ ...EXACT, ...POSTGRES })
  states.add([granted(0, 'first', 1n)])
  expect(states.add(crossing)).toBeUndefined()
  expect(states.add([released])).toBeUndefined()
  expect(states.add([granted(250, 'third', 4n)])).toContain('held should be false') // the waiter is the first
})

test('an inspection may show a claim as a waiter that is granted at the same time, but nobody else may have seen it', () => {
  const seen = { name: 'a', state: 'waiting', owner: 'first', note: '', remaining: 5_000, position: 0 } as const
  const inspected = sent(0, { verb: 'inspect' }, [seen])
  expect(new States(EXACT).add([granted(0, 'first', 1n), inspected])).toBeDefined()
  const states = (): States => new States({ ...EXACT, grantsLate: true, joinsFirst: true })
  expect(states().add([granted(0, 'first', 1n), inspected])).toBeUndefined()
  const ended = (at: number): Sent => sent(at, { verb: 'release', id: 'first' }, 'released')
  const endedTwice = states()
  endedTwice.add([granted(0, 'first', 1n), ended(0)])
  expect(endedTwice.add([ended(50)])).toContain('the answer should be "gone"')
})

test('no waiter that was answered is overtaken, whatever crosses', () => {
  const states = new States({ ...EXACT, ...POSTGRES })
  states.add([granted(0, 'first', 1n)])
  states.add([refused(50, 'waiter', 'first', 1n)])
  const crossing = [refused(100, 'waiter', 'first', 1n), broken, granted(100, 'second', 3n)]
  expect(states.add(crossing)).toBeDefined()
})
