import { expect, test } from 'vitest'
import { planOf } from './plan.ts'

const options = { seed: 42, faults: ['client-pause', 'cut', 'server-kill'], duration: 60_000, ttl: 1_000 }

test('the same seed gives the same plan', () => {
  expect(planOf(options)).toEqual(planOf(options))
  expect(planOf({ ...options, seed: 43 })).not.toEqual(planOf(options))
})

test('each fault occurs, before any other has occurred three more times', () => {
  const order = planOf(options).map(({ fault }) => fault)
  for (let from = 0; from + 12 < order.length; from += 6) {
    for (const fault of options.faults) expect(order.slice(from, from + 12)).toContain(fault)
  }
})

test('all faults are within the duration, and none is near the end', () => {
  const plan = planOf(options)
  expect(plan.length).toBeGreaterThan(60)
  for (const [index, { at, length }] of plan.entries()) {
    expect(at).toBeGreaterThan(plan[index - 1]?.at ?? 0)
    expect(at).toBeLessThan(58_000)
    expect(length).toBeLessThanOrEqual(3_000)
  }
})

test('faults of clients last longer where a lease outlives its ttl, and those of servers do not', () => {
  const lengths = (lasts: number, isServer: boolean): number[] =>
    planOf({ ...options, lasts })
      .filter(({ fault }) => (fault === 'server-kill') === isServer)
      .map(({ length }) => length)
  expect(lengths(2_000, false)).toEqual(lengths(1_000, false).map(length => 2 * length))
  expect(lengths(2_000, true)).toEqual(lengths(1_000, true))
})

test('no other fault begins while an address is dead, which is longer than earlier faults and a free name may last', () => {
  const plan = planOf({ ...options, faults: ['client-pause', 'name-server'], calm: 2_000 })
  const dead = plan.flatMap(({ at, fault, length }) => (fault === 'name-server' ? [{ at, until: at + length }] : []))
  expect(dead.length).toBeGreaterThan(3)
  for (const { at, until } of dead) {
    expect(until - at).toBeGreaterThan(3_000 + 2_000)
    expect(plan.filter(other => other.at > at && other.at < until)).toEqual([])
  }
})

test('a run without faults has an empty plan', () => {
  expect(planOf({ ...options, faults: [] })).toEqual([])
})
