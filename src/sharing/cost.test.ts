/**
 * The requests that docs/sharing states, over memory. A subscription to notifications is not counted. Servers
 * answer a wait with one request less if they arm its notification with the first.
 */
import { describe, expect, test } from 'vitest'
import { type Stage, stage } from '../../test/scripted-store.ts'
import type { Locks } from '../create-locks.ts'

type Held = { release(): Promise<unknown> } | undefined
type Acquire = (locks: Locks) => Promise<Held>

/** Requests of a call until nothing of it is under way, and of its release. `first` is held until the call waits. */
async function costOf(
  { locks, other, clock, store }: Stage,
  acquire: Acquire,
  first?: Acquire,
): Promise<[acquire: number, release: number]> {
  const requests = (): number => store.calls.splice(0).filter(verb => verb !== 'watch').length
  const blocker = await first?.(other)
  const acquiring = acquire(locks)
  await clock.advance(100)
  await blocker?.release()
  await clock.advance(100)
  const held = await acquiring
  const acquired = requests()
  await held?.release()
  await clock.advance(100)
  return [acquired, requests()]
}

const reader: Acquire = locks => locks.readWrite('x').reader.acquire()
const permit: Acquire = locks => locks.semaphore('x', { limit: 1 }).acquire()
const writer: Acquire = locks => locks.readWrite('x').writer.acquire()

const cases: readonly [string, Acquire, Acquire | undefined, acquired: number][] = [
  ['a reader, nobody holds', reader, undefined, 1],
  ['a reader while another reads', reader, reader, 1],
  ['a writer, nobody holds', writer, undefined, 1],
  ['a reader that waits for a writer', reader, writer, 3],
  ['a permit that waits for a permit', permit, permit, 3],
  ['a writer that waits for a reader', writer, reader, 3],
]

test.each(cases)('%s', async (_, acquire, first, acquired) => {
  expect(await costOf(stage(), acquire, first)).toEqual([acquired, 1])
})

describe.each([2, 3, 10])('a set of %d names', n => {
  const names = Array.from({ length: n }, (_, index) => `name ${index}`)
  const [lowest, highest] = [names[0] ?? '', names[n - 1] ?? '']
  const all: Acquire = locks => locks.all(names).acquire()
  const trying: Acquire = locks => locks.all(names).tryAcquire()
  const one =
    (name: string): Acquire =>
    locks =>
      locks.acquire(name)

  const sets: readonly [string, Acquire, Acquire | undefined, number, number][] = [
    ['all free', all, undefined, n, n],
    ['the last one busy', all, one(highest), n + 3, n],
    ['the first one busy', all, one(lowest), 3 * n + 1, n],
    ['a try, all free', trying, undefined, n, n],
    ['a try, the first one busy', trying, one(lowest), 1, 0],
    ['a try, the last one busy', trying, one(highest), 2 * n - 1, 0],
  ]
  test.each(sets)('%s', async (_, acquire, first, acquired, release) => {
    expect(await costOf(stage(), acquire, first)).toEqual([acquired, release])
  })
})
