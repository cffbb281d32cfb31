import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { until } from '../../../../lab/servers/until.ts'
import { createLocks } from '../../../create-locks.ts'
import { type HttpRelay, startRelay } from './relay.ts'
import { base64, claimOf, hold, look, signal, storeOf } from './support.ts'

let server: EtcdServer
let relay: HttpRelay

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

beforeEach(async () => {
  relay = await startRelay(server)
})
afterEach(() => relay[Symbol.asyncDispose]())

test('a claim that waits until it may join a queue is busy, not unanswered, and keeps its position', async () => {
  await using store = storeOf([relay])
  await hold(store, claimOf('joining', { ttl: 60_000 }))
  const claim = { queue: true, ttl: 15_000 }
  await store.acquire(claimOf('joining', claim), signal)
  const held = Array.from({ length: 16 }, () => relay.holdBack(/kv\/txn.*request_put/))
  const joining = Array.from({ length: 16 }, () => store.acquire(claimOf('joining', claim), signal))
  const passes = await Promise.all(held)
  const [first, last] = [claimOf('joining', claim), claimOf('joining', claim)]
  const notYet = store.acquire(first, signal)
  const behind = store.acquire(last, signal)
  expect(await notYet).toMatchObject({ held: false, retryAfter: 1 })
  expect(await behind).toMatchObject({ held: false, retryAfter: 1 })
  const later = store.acquire(last, signal)
  const earlier = store.acquire(first, signal)
  const joins = (): string[] => relay.requests.filter(request => request.includes('request_put'))
  const before = joins().length
  for (const pass of passes) pass()
  await Promise.all([...joining, later, earlier])
  const positions = [first, last].map(({ id }) => base64(`holdfast\tjoining\tqueue\t${id}`))
  expect(joins().slice(before)).toEqual(positions.map(key => expect.stringContaining(key)))
})

test('a permit that is asked for once, while others are granted, is not refused as if none were free', async () => {
  await using store = storeOf([relay])
  const terms = { limit: 10, ttl: 3_000 }
  const held = relay.holdBack(/kv\/txn.*request_put/)
  const first = store.acquire(claimOf('permits', terms), signal)
  const pass = await held
  await expect(store.acquire(claimOf('permits', terms), signal)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    message: expect.stringContaining('many calls of this process ask for "permits" at once'),
  })
  pass()
  expect(await first).toMatchObject({ held: true })
})

test('a crowd of 1,000 waiters is served, and none hears that the store is unavailable', async () => {
  await using other = storeOf([server])
  const [holders, waiters] = [createLocks(other, { ttl: 30_000 }), createLocks(storeOf([relay]), { ttl: 6_000 })]
  const lease = await holders.acquire('crowd')
  const failed: unknown[] = []
  let served = 0
  const crowd = Array.from({ length: 1_000 }, () =>
    waiters.acquire('crowd').then(
      async each => {
        served += 1
        await each.release()
      },
      error => failed.push(error),
    ),
  )
  await until('all wait', async () => (await look(other, { name: 'crowd' })).length === 1_001, { limit: 60_000 })
  relay.requests.length = 0
  const kept = (): number => relay.requests.filter(request => request.includes('lease/keepalive')).length
  await until('they have kept their positions', () => kept() >= 3, { limit: 30_000 })
  expect(relay.requests.length).toBeLessThan(30)
  await lease.release()
  await Promise.all(crowd)
  expect([served, failed]).toEqual([1_000, []])
  await waiters.close()
}, 180_000)

test('waiters that ask at once while their queue is not watched share the reads of it', async () => {
  await using store = storeOf([relay])
  for (let watch = 0; watch < 10; watch += 1) void relay.holdBack(/watch/)
  await hold(store, claimOf('unwatched', { ttl: 60_000 }))
  const waiters = Array.from({ length: 50 }, () => claimOf('unwatched', { queue: true }))
  const ask = (): Promise<unknown> => Promise.all(waiters.map(waiter => store.acquire(waiter, signal)))
  await ask()
  const before = relay.requests.length
  await ask()
  const ofQueue = relay.requests
    .slice(before)
    .filter(request => request.includes('range_end') && !request.includes('request_put'))
  expect(ofQueue.length).toBeGreaterThan(0)
  expect(ofQueue.length).toBeLessThan(10)
})
