import { expect, test } from 'vitest'
import type { LeaseRecord } from '../contract/store.ts'
import { detail } from './detail.ts'
import { Sight } from './sight.ts'
import type { Look } from './survey.ts'

const look: Look = {
  ...{ at: 60_000, since: 0, pause: 500, sights: new Map(), signs: new Map() },
  ...{ changes: [], changed: 0, takeovers: 0, isPartial: false, search: undefined, failure: undefined },
}
const record: LeaseRecord = {
  name: 'job',
  state: 'held',
  owner: 'a',
  note: '',
  token: 1n,
  remaining: 20_000,
} as LeaseRecord

/** The page after looks at these times and records. */
function seen(...looks: readonly (readonly [at: number, ...records: LeaseRecord[]])[]): Record<string, unknown> {
  const sight = new Sight('job')
  let before = 0
  for (const [at, ...records] of looks) {
    sight.see(records, at, at - before)
    before = at
  }
  return detail('job', { ...look, at: looks.at(-1)?.[0] ?? 0, sights: new Map([['job', sight]]) })
}

test('holders have a start and an end, or hold it now, the newest first', () => {
  const page = seen(
    [1_000, record],
    [5_000, record],
    [6_000, { ...record, owner: 'b', token: 2n }],
    [9_000, { ...record, owner: 'b', token: 2n }],
  )
  expect(page).toMatchObject({ state: 'held', use: null, isSlotted: false, at: 9_000 })
  expect(page.leases).toMatchObject([
    { owner: 'b', token: '2', from: 6_000, to: null, isSinceGrant: true, remaining: 20_000 },
    { owner: 'a', token: '1', from: 1_000, to: 5_000, isSinceGrant: false, remaining: null },
  ])
})

test('a free name has a history, and nobody to break', () => {
  const page = seen([1_000, record], [2_000, record], [3_000])
  expect(page).toMatchObject({ state: 'free', use: null, leases: [{ owner: 'a', to: 2_000 }] })
})

test('an end without a renewal is told from others', () => {
  const page = seen([0, record], [7_000, record], [8_000, { ...record, remaining: 1_000 }], [9_000])
  expect(page.leases).toMatchObject([{ isOverdue: true }])
})

test('the leases of a shared name are under their slots, those before below those that hold them', () => {
  const permit = (token: bigint, ...slots: number[]): LeaseRecord => ({ ...record, token, slots, limit: 12 })
  const page = seen([0, permit(1n, 0), permit(2n, 10)], [1_000, permit(3n, 1, 2), permit(4n, 0), permit(2n, 10)])
  expect(page).toMatchObject({ use: '4 of 12', isSlotted: true })
  expect((page.leases as { slots: string; token: string }[]).map(({ slots, token }) => [slots, token])).toEqual([
    ['slot 0', '4'],
    ['slot 0', '1'],
    ['slots 1-2', '3'],
    ['slot 10', '2'],
  ])
  const free = seen([0, permit(1n, 0)], [1_000])
  expect(free, 'also when nobody holds it').toMatchObject({ state: 'free', use: null, isSlotted: true })
})

test('a waiter says how it wants the name, and for how long it waits', () => {
  const waiter: LeaseRecord = { ...record, state: 'waiting', owner: 'w', limit: 5, units: 2 }
  expect(seen([0, record, waiter], [4_000, record, waiter]).waiters).toEqual([
    { owner: 'w', note: '', want: 'for 2 slots', waited: 4_000 },
  ])
})

test('a name that was not read is unknown, not free', () => {
  expect(detail('job', look)).toMatchObject({ state: 'free', leases: [] })
  expect(detail('job', undefined)).toMatchObject({ state: 'unknown' })
  expect(detail('job', { ...look, isPartial: true })).toMatchObject({ state: 'unknown' })
  expect(detail('job', { ...look, failure: new Error('down') })).toMatchObject({ state: 'unknown' })
})
