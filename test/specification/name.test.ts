import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { Name } from '../../src/stores/rules/name.ts'
import { brokenRules } from '../model/name/broken.ts'
import { disagreement, type Step, simulate, tracesOf, withMistake } from './traces.ts'

const PATH = join(import.meta.dirname, 'name.qnt')
const SEED = `0x${Math.floor(Math.random() * 2 ** 48).toString(16)}`

/** A seed that fails once fails again. */
const OPTIONS = { timeout: 300_000, retry: 0 }

let traces: Step[][]

beforeAll(() => {
  traces = tracesOf(PATH, 500, SEED)
}, 300_000)

test(`random requests break no invariant of the specification (seed ${SEED})`, OPTIONS, () => {
  expect(simulate(PATH, 5_000, SEED)).toMatch(/No violation found/)
})

test(`the class decides each trace of the specification as it does (seed ${SEED})`, OPTIONS, () => {
  expect(traces.length).toBeGreaterThan(100)
  expect(new Set(traces.flat().map(({ asked, answer }) => `${asked.verb} ${answer.held}`)).size).toBe(8)
  expect(traces.flat().some(({ state }) => state.waiters.some(({ isPassed }) => isPassed))).toBe(true)
  for (const trace of traces) expect(disagreement(Name, trace)).toBeUndefined()
})

test.each([
  ['no grace period', 'this.now >= this.#changed + first.grace\n', 'true\n'],
  ['the largest limit counts', 'Math.min(least, holder', 'Math.max(least, holder'],
  ['a copy shortens a lease', 'Math.max(own.expires, this.now + ttl)', 'this.now'],
  ['no tombstone', 'this.#gone.set(', 'if (!id) this.#gone.set('],
  ['a lapsed waiter counts', 'this.#removeWaiters(({ lapses }) => lapses <= now)', ''],
])('traces find a class with a mistake: %s', async (_, from, to) => {
  const broken = await brokenRules(from, to)
  expect(traces.some(trace => disagreement(broken.Name, trace) !== undefined)).toBe(true)
})

test.each([
  ['excludes: a limit of a holder is forgotten', 'least(n, limit(id)) - used', 'limit(id) - used'],
  ['excludes: a slot is given twice', '.exclude(used(n)), units(id))', ', units(id))'],
  ['tokens: a token is given again', 'token: n.token + 1,\n', 'token: n.token,\n'],
  ['tokens: a release lowers the last', 'if (found) left else', 'if (found) { ...left, token: 0 } else'],
  [
    'holds: a copy shortens a lease',
    'val end = if (own[0].expires > now + ttl(id)) own[0].expires else',
    'val end = if (queues) now else',
  ],
  ['in order: no grace period', 'now >= n.changed + grace(ahead[0].id)', 'true'],
])('the invariants find a specification with a mistake: %s', OPTIONS, (_, from, to) => {
  expect(() => simulate(withMistake(PATH, from, to), 5_000, SEED)).toThrow('Invariant violated')
})
