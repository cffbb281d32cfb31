import { expect, test } from 'vitest'
import { LARGEST_LIMIT, type LeaseRecord } from '../contract/store.ts'
import { Sight } from './sight.ts'
import { Kinds } from './signs.ts'
import type { Look } from './survey.ts'
import { troublesOf } from './troubles.ts'
import { verdictOf } from './verdict.ts'
import { overview } from './view.ts'

const START = 1_700_000_000_000

function held(name: string, owner: string, more: Partial<LeaseRecord> = {}): LeaseRecord {
  return { name, state: 'held', owner, token: 7n, note: '', remaining: 20_000, ...more }
}

const waiting = (name: string, owner: string): LeaseRecord => ({
  name,
  state: 'waiting',
  owner,
  note: '',
  remaining: 0,
})

/** A look at these records `seconds` after the first. Holders of `silent` renewed once and never again. */
function look(
  records: readonly LeaseRecord[],
  { seconds = 12, silent = '', ...more }: Partial<Look> & { seconds?: number; silent?: string } = {},
): Look {
  const sights = new Map<string, Sight>()
  const at = (second: number): number => START + second * 1_000
  for (const [name, ofName] of Map.groupBy(records, each => each.name)) {
    const sight = new Sight(name)
    for (let second = 0; second <= seconds; second += 1) {
      const isFirst = second === 0
      const seen = ofName.map(each => ({
        ...each,
        remaining: each.owner === silent ? (isFirst ? 15_000 : 20_000 - (second - 1) * 1_000) : 20_000,
      }))
      sight.see(seen, at(second), 1_000)
    }
    sights.set(name, sight)
  }
  const nothing = { changes: [], changed: 0, takeovers: 0, isPartial: false, search: undefined, failure: undefined }
  const signs = new Kinds().signs(sights.values())
  return { at: at(seconds), since: START, pause: 500, sights, signs, ...nothing, ...more }
}

/** The verdict in one line for its sentence and one for its reasons. */
function said(seen: Look): string[] {
  const { say, why } = verdictOf(seen, troublesOf(seen.signs))
  return [say.join(''), why]
}

const FIVE = ['e', 'b', 'c', 'd', 'a'].map(letter => held(`job-${letter}`, 'worker-a'))

test('a process that does not renew five names is one sign', () => {
  const seen = look([...FIVE, held('other', 'worker-b'), waiting('job-b', 'worker-b')], { silent: 'worker-a' })
  expect(said(seen)).toEqual(['worker-a has not renewed 5 names for 11 s', 'The first ends in 9.0 s · 1 waiting'])
  expect(verdictOf(seen, troublesOf(seen.signs))).toMatchObject({ level: 'bad', owner: 'worker-a' })
  expect(troublesOf(seen.signs)).toMatchObject([{ names: ['job-a', 'job-b', 'job-c', 'job-d', 'job-e'] }])
})

test('several permits of a process that it does not renew are one sign of their name', () => {
  const permits = [0, 1].map(slot => held('api', 'worker-a', { token: BigInt(slot), limit: 3, slots: [slot] }))
  const seen = look(permits, { silent: 'worker-a' })
  expect(said(seen)).toEqual([
    'api may be stuck',
    'worker-a · Not renewed for 11 s (slots 0-1) · The first ends in 9.0 s',
  ])
})

test('of several signs the worst comes first, and the others are counted', () => {
  const usual = Array.from({ length: 9 }, (_, index) =>
    held(`invoices-${index}`, 'b', { token: BigInt(START - 1_000) * 1_000n }),
  )
  const long = held('invoices-17', 'c', { token: BigInt(START - 3_600_000) * 1_000n })
  const seen = look([...usual, long, held('job', 'worker-a')], { silent: 'worker-a' })
  expect(said(seen)).toEqual(['job may be stuck', 'worker-a · Not renewed for 11 s, ends in 9.0 s · 1 more sign below'])
})

test('nobody is stuck: the longest wait, of callers and not of slots', () => {
  const slots = held('geocoder', 'a', { limit: 5, slots: [0, 1, 2, 3, 4] })
  const callers = ['b', 'c'].map(owner => ({ ...waiting('geocoder', owner), units: 2 }))
  expect(said(look([slots, ...callers]))).toEqual([
    'Longest wait: geocoder',
    'Held: 5 of 5, 2 waiting, the first for at least 12 s',
  ])
  const reader = held('catalogue', 'a', { limit: LARGEST_LIMIT })
  expect(said(look([reader, waiting('catalogue', 'b')]))[1]).toMatch(/^Held: 1 reader, 1 waiting,/)
})

test.each([
  ['an empty store', look([]), 'No name is held'],
  ['names without trouble', look([held('job', 'a')]), 'Nobody waits, and no holder seems stuck'],
  ['a store that is down', look([held('job', 'a')], { failure: new Error('refused') }), 'The store cannot be read'],
  ['only some names', look([], { isPartial: true }), 'Nobody waits, and no holder seems stuck'],
])('%s: what it says', (_, seen, text) => {
  expect(said(seen)[0]).toBe(text)
})

interface Overview {
  readonly title: string
  readonly counts: unknown
  readonly names: readonly { readonly title: string; readonly slots: readonly { readonly title: string }[] }[]
}

const shown = (seen: Look, store = 'redis://cache'): Overview =>
  overview(seen, 'read', { acquired: 0, lost: 0 }, store) as unknown as Overview

test('rows are in the order of trouble, then of names, with a long wait before the rest', () => {
  const others = ['job-10', 'job-9', 'waited', 'brief'].map(name => held(name, 'worker-b'))
  const seen = look([...others, waiting('waited', 'c'), ...FIVE], { silent: 'worker-a' })
  const names = shown(seen).names.map(({ title }) => title)
  expect(names).toEqual(['job-a', 'job-b', 'job-c', 'job-d', 'job-e', 'waited', 'brief', 'job-9', 'job-10'])
  const soon = look([...others, waiting('waited', 'c')], { seconds: 9 })
  expect(shown(soon).names.map(({ title }) => title)).toEqual(['brief', 'job-9', 'job-10', 'waited'])
})

test('the title says how many names may be stuck, and which store it is', () => {
  expect(shown(look(FIVE, { silent: 'worker-a' })).title).toBe('(5) may be stuck · redis://cache')
  expect(shown(look([])).title).toBe('Holdfast · redis://cache')
  expect(shown(look([]), '').title).toBe('Holdfast')
  expect(shown(look([], { failure: new Error('refused') })).title).toBe('Cannot be read · redis://cache')
})

test('a store that is down has no counts, because what was seen is old', () => {
  expect(shown(look(FIVE)).counts).toEqual({ stuck: 0, waiting: 0, held: 5 })
  expect(shown(look(FIVE, { failure: new Error('refused') })).counts).toBeNull()
})

test('a shared name is one row with its slots', () => {
  const permits = [0, 1].map(slot => held('api', 'a', { token: BigInt(slot), limit: 3, slots: [slot] }))
  expect(shown(look(permits)).names).toMatchObject([
    { owner: '2 of 3', slots: [{ title: 'slot 0' }, { title: 'slot 1' }] },
  ])
})
