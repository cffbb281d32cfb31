import { expect, test } from 'vitest'
import type { Busy, Claim, Grant, Store } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { memory } from './index.ts'

const { signal } = new AbortController()

function claim(name: string, id: string, changes: Partial<Claim> = {}): Claim {
  return { name, id, owner: id, ttl: 1_000, note: '', queue: true, ...changes }
}

function open(): { clock: VirtualClock; store: Store; put: (claim: Claim) => Promise<Grant | Busy> } {
  const clock = new VirtualClock()
  const store = memory({ clock })
  return { clock, store, put: each => store.acquire(each, signal) }
}

test('a watch that arrives after its end changes nothing, nor does the end of an older one', async () => {
  const { store, put } = open()
  await put(claim('a', '1'))
  await put(claim('a', '2'))
  const woken: string[] = []
  const watch = (name: string, signal: AbortSignal): Promise<void> =>
    store.watch?.(claim('a', '2'), () => woken.push(name), signal) ?? Promise.reject(new Error('no watch'))
  const older = new AbortController()
  await watch('older', older.signal)
  await watch('newer', signal)
  older.abort()
  await watch('late', AbortSignal.abort())
  await store.release({ name: 'a', id: '1' }, signal)
  expect(woken).toEqual(['newer'])
})

test('twenty thousand idle names are forgotten, and tokens still rise', async () => {
  const { store, put, clock } = open()
  const token = async (name: string, id: string): Promise<bigint> => {
    const answer = await put(claim(name, id))
    if (!answer.held) throw new Error('busy')
    return answer.token
  }
  const first = await token('a', 'first')
  await store.release({ name: 'a', id: 'first' }, signal)
  for (let i = 0; i < 20_000; i += 1) {
    await token(`${i}`, `${i}`)
    if (i % 100 === 0) await clock.block(1_000)
  }
  await clock.block(60_000)
  expect(await token('a', 'second')).toBeGreaterThan(first)
  expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
})

test('tokens follow the wall clock in microseconds, and so rise across a restart', async () => {
  const { put, clock } = open()
  await clock.advance(5_000)
  const before = await put(claim('a', '1'))
  const restarted = memory({ clock })
  await clock.advance(1)
  const after = await restarted.acquire(claim('a', '2'), signal)
  expect(before).toMatchObject({ token: BigInt(clock.wall() - 1) * 1_000n })
  expect(after).toMatchObject({ token: BigInt(clock.wall()) * 1_000n })
})

test('tokens fall if the process restarts and its clock is then behind the last grant', async () => {
  const { put, clock } = open()
  await clock.advance(5_000)
  const before = await put(claim('a', '1'))
  const after = await open().put(claim('a', '2')) // a new clock is 5 s behind
  expect(before.held && after.held && after.token < before.token).toBe(true)
})

test('tokens rise over 200,000 names, and nothing is kept of them', async () => {
  const { store, put } = open()
  let last = 0n
  for (let index = 0; index < 200_000; index += 1) {
    const name = `name ${index}`
    const answer = await put(claim(name, String(index), { queue: false }))
    if (!answer.held || answer.token <= last) throw new Error(`${name} has no token above ${last}`)
    last = answer.token
    await store.release({ name, id: String(index) }, signal)
  }
  const again = await put(claim('name 0', 'again'))
  expect(again.held && again.token > last).toBe(true)
  expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
}, 30_000)
