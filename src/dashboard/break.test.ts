import { expect, onTestFinished, test } from 'vitest'
import { markerOf } from '../contract/reserved.ts'
import { createLocks, type Locks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { breakShown } from './break.ts'

function locksOf(): Locks {
  const locks = createLocks(memory(), { ttl: 30_000 })
  onTestFinished(() => locks.close({ grace: 0 }))
  return locks
}

test('a lease is broken only if its name was typed', async () => {
  const locks = locksOf()
  const { token } = await locks.acquire('job')
  const of = `${token}`
  for (const typed of ['', 'jo', 'job ', 'Job']) {
    const error = 'Not broken: type job exactly'
    expect(await breakShown(locks, { name: 'job', typed, of })).toEqual([400, { error }])
  }
  expect((await locks.inspect('job')).holders[0]?.token).toBe(token)
  const [status, answer] = await breakShown(locks, { name: 'job', typed: 'job', of })
  expect([status, BigInt(answer.token ?? 0) > token]).toEqual([200, true])
  expect((await locks.inspect('job')).holders).toEqual([])
})

test('a break takes the lease only from the holder that the page showed', async () => {
  const locks = locksOf()
  const before = await locks.acquire('job')
  await before.release()
  const { token } = await locks.acquire('job')
  const shown = { name: 'job', typed: 'job' }
  const gone = { error: 'Not broken: nobody who was shown still holds it' }
  expect(await breakShown(locks, { ...shown, of: `${before.token}` })).toEqual([409, gone])
  for (const of of ['', 'x', '-1']) {
    const error = 'Not broken: the token of the holder of job is missing'
    expect(await breakShown(locks, { ...shown, of })).toEqual([400, { error }])
  }
  expect((await locks.inspect('job')).holders[0]?.token).toBe(token)
})

test('a shared name is broken only in a slot that was chosen, or in all', async () => {
  const locks = locksOf()
  const semaphore = locks.semaphore('job', { limit: 5 })
  const [first, second] = [await semaphore.acquire(), await semaphore.acquire({ permits: 3 })]
  const shown = { name: 'job', typed: 'job' }
  const error = 'job is shared, and held in slots 0-3: choose one lease, or all'
  expect(await breakShown(locks, { ...shown, of: '' })).toEqual([400, { error }])
  expect((await locks.inspect('job')).holders).toHaveLength(2)
  expect(await breakShown(locks, { ...shown, of: `${second.token}` })).toMatchObject([200, {}])
  first.assertHeld()
  expect((await locks.inspect('job')).holders).toMatchObject([{ slots: [0] }])
  expect(await breakShown(locks, { ...shown, of: '' }), 'also if one holds it').toMatchObject([400, {}])
  expect(await breakShown(locks, { ...shown, of: `all ${first.token}` })).toMatchObject([200, {}])
  expect((await locks.inspect('job')).holders).toEqual([])
})

test('a break of all takes no lease that was acquired after the page showed them', async () => {
  const locks = locksOf()
  const semaphore = locks.semaphore('job', { limit: 3 })
  const shown = [await semaphore.acquire(), await semaphore.acquire()]
  const later = await semaphore.acquire()
  const of = `all ${shown[1]?.token}`
  const [status, answer] = await breakShown(locks, { name: 'job', typed: 'job', of })
  expect([status, BigInt(answer.token ?? 0) > (shown[1]?.token ?? 0n)]).toEqual([200, true])
  expect((await locks.inspect('job')).holders).toMatchObject([{ token: later.token }])
  expect(await breakShown(locks, { name: 'job', typed: 'job', of })).toMatchObject([409, {}])
  later.assertHeld()
})

test('a free name is not broken', async () => {
  const free = [409, { error: 'job is free' }]
  expect(await breakShown(locksOf(), { name: 'job', typed: 'job', of: '' })).toEqual(free)
  for (const of of ['1', 'all 1'])
    expect(await breakShown(locksOf(), { name: 'job', typed: 'job', of })).toMatchObject([409, {}])
})

test('an odd name is typed as the page shows it, because nobody can type what has no shape', async () => {
  const locks = locksOf()
  const name = 'a\ue0b0  b'
  const { token } = await locks.acquire(name)
  expect(await breakShown(locks, { name, typed: name, of: `${token}` })).toMatchObject([400, {}])
  expect(await breakShown(locks, { name, typed: 'a\\u{e0b0}  b', of: `${token}` })).toMatchObject([200, {}])
})

test('a marker is removed by the name of the job', async () => {
  const locks = locksOf()
  await locks.once('job', { within: 60_000 }, async () => {})
  const name = markerOf('job')
  const [marker] = (await locks.inspect(name)).holders
  expect(await breakShown(locks, { name, typed: 'job', of: `${marker?.token}` })).toMatchObject([200, {}])
  expect((await locks.inspect(markerOf('job'))).holders).toEqual([])
})

test('a store that fails is told from a request that is not valid', async () => {
  const locks = locksOf()
  expect(await breakShown(locks, { name: '', typed: '', of: '1' })).toMatchObject([400, {}])
  await locks.close({ grace: 0 })
  expect(await breakShown(locks, { name: 'job', typed: 'job', of: '1' })).toMatchObject([502, {}])
})
