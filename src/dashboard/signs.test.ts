import { expect, test } from 'vitest'
import type { LeaseRecord } from '../contract/store.ts'
import { Hold } from './hold.ts'
import { Kinds, kindOf, type Sign } from './signs.ts'

const START = 1_700_000_000_000

function record(remaining: number, more: Partial<LeaseRecord> = {}): LeaseRecord {
  return { name: 'job', state: 'held', owner: 'a', token: 7n, note: '', remaining, ...more }
}

const noNote: (second: number) => string = () => ''

/** A lease that is seen each second from 0 to `seconds`, and renewed whenever a third of its ttl is over. */
function held(seconds: number, { until = seconds, ttl = 30, note = noNote } = {}): Hold {
  let renewed = 0
  const seenAt = (second: number): LeaseRecord => {
    if (second <= until && second - renewed >= ttl / 3) renewed = second
    return record((ttl - (second - renewed)) * 1_000, { note: note(second) })
  }
  const hold = new Hold(seenAt(0), START, true)
  for (let second = 1; second <= seconds; second += 1) hold.see(seenAt(second), START + second * 1_000, 1_000)
  return hold
}

function signs(holds: Record<string, Hold>, kinds = new Kinds()): Record<string, Sign['kind'][]> {
  const found = kinds.signs(Object.entries(holds).map(([name, hold]) => ({ name, holds: [hold] })))
  return Object.fromEntries(Array.from(found, ([name, all]) => [name, all.map(({ kind }) => kind)]))
}

function texts(hold: Hold, kinds = new Kinds()): string[] {
  return (kinds.signs([{ name: 'job-9', holds: [hold] }]).get('job-9') ?? []).map(({ text }) => text)
}

test('a holder that renews is not stuck, however long it holds', () => {
  expect(signs({ job: held(3_600) })).toEqual({})
})

test('a holder that no longer renews is found before its lease ends', () => {
  expect(signs({ job: held(48, { until: 30 }) })).toEqual({ job: ['not renewed'] })
  expect(texts(held(48, { until: 30 }))).toEqual(['Not renewed for 18 s, ends in 12 s'])
  expect(signs({ job: held(44, { until: 30 }) })).toEqual({})
})

test('a fixed term and a marker are never renewed, and not stuck', () => {
  expect(signs({ job: held(29, { until: 0 }) })).toEqual({})
  expect(signs({ 'job␟ran': held(48, { until: 30 }) })).toEqual({})
})

test('a holder that extended to a shorter ttl and renews is not stuck', () => {
  const hold = held(30, { ttl: 60 })
  for (let second = 31; second <= 60; second += 1)
    hold.see(record((6 - (second % 2)) * 1_000), START + second * 1_000, 1_000)
  expect(signs({ job: hold })).toEqual({})
})

test('a step of the wall clock is no renewal', () => {
  for (const step of [-3_600_000, 3_600_000]) {
    const hold = new Hold(record(30_000), START, true)
    for (let second = 1; second < 29; second += 1)
      hold.see(record((30 - second) * 1_000), START + second * 1_000 + (second > 5 ? step : 0), 1_000)
    expect(signs({ job: hold })).toEqual({})
  }
  // As in SQLite, where it also changes the time left.
  const hold = new Hold(record(30_000), START, true)
  hold.see(record(33_000), START - 3_000, 1_000)
  expect(hold.isRenewed).toBe(false)
})

test('one of 200 that holds for far longer than the others is found', () => {
  const holds = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`job-${index}`, held(index % 10)]))
  expect(signs(holds)).toEqual({})
  expect(signs({ ...holds, 'job-17': held(60) })).toEqual({ 'job-17': ['long'] })
})

test('what earlier leases of a kind took counts more than the present ones', () => {
  const kinds = new Kinds()
  for (let index = 0; index < 10; index += 1) kinds.ended(`job-${index}`, 2_000)
  expect(texts(held(60), kinds)).toEqual(['Held for 60 s, others of job-# for 2.0 s or less'])
  expect(signs({ 'job-1': held(60), 'job-2': held(60), 'other-1': held(60) }, kinds)).toEqual({
    'job-1': ['long'],
    'job-2': ['long'],
  })
})

test('with fewer than five others nothing is usual, and less than ten seconds is never long', () => {
  const kinds = new Kinds()
  for (let index = 0; index < 4; index += 1) kinds.ended('job-1', 10)
  expect(texts(held(60), kinds)).toEqual([])
  kinds.ended('job-1', 10)
  expect(texts(held(9), kinds)).toEqual([])
  expect(texts(held(10), kinds)).toEqual(['Held for 10 s, others of job-# for 0.0 s or less'])
})

test('a note that changed steadily and then no longer is found', () => {
  const note = (second: number): string => `${Math.min(Math.floor(second / 2), 10)} of 50`
  expect(texts(held(29, { note }))).toEqual([])
  expect(texts(held(40, { note }))).toEqual([
    'Its note has not changed for 20 s. Before, it changed at least every 2.0 s',
  ])
})

test('a token that is a time says since when the name is held; a later one and a counter do not', () => {
  const hour = 3_600_000
  const since = (token: bigint): number[] => {
    const hold = new Hold(record(1_000, { token }), START, false)
    return [hold.age, Number(hold.isSinceGrant)]
  }
  expect(since(BigInt(START - hour) * 1_000n)).toEqual([hour, 1])
  expect(since(BigInt(START + hour) * 1_000n)).toEqual([0, 0])
  expect(since(33n)).toEqual([0, 0])
})

test.each([
  ['invoices-7', 'invoices-#'],
  ['tenant/9f8b3c1e-0a52-4c0d-9e1f-2b6a7c8d9e0f/sync', 'tenant/#/sync'],
  ['order:01J9ZQ5XK3V8T2M4N6P7R8S9TA', 'order:#'],
  ['order:01j9zq5xk3v8t2m4n6p7r8s9ta:7', 'order:#:#'],
  ['job_9f8b3c1e0a524c0d9e1f2b6a7c8d9e0f', 'job_#'],
  ['01J9ZQ5XK3V8T2M4N6P7R8S9TAX', '#J#ZQ#XK#V#T#M#N#P#R#S#TAX'],
  ['v2.7z9', 'v#.#z#'],
  ['reports', 'reports'],
])('the kind of %s is %s', (name, kind) => {
  expect(kindOf(name)).toBe(kind)
})
