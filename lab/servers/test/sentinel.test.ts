import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { SentinelSet, startSentinel } from '../sentinel.ts'

test.concurrent('a failover makes the replica master, for clients too, and the old master its replica', {
  timeout: 60_000,
}, async () => {
  await using set = await startSentinel()
  const client = new Redis({
    name: SentinelSet.group,
    sentinels: set.sentinels.map(({ host, port }) => ({ host, port })),
  })
  client.on('error', () => {})
  const before = await set.master()
  expect((await set.replica()).port).not.toBe(before.port)

  const after = await set.failover('kill')
  expect(await client.set('name', 'value')).toBe('OK')
  expect(await after.call('GET', 'name')).toBe('value')

  await before.start()
  await set.agreed()
  expect(await set.replica()).toBe(before)
  expect(await before.call('GET', 'name')).toBe('value')
  client.disconnect()
})

test.concurrent('a paused master is replaced', { timeout: 60_000 }, async () => {
  await using set = await startSentinel()
  const before = await set.master()
  expect(await set.failover('pause')).not.toBe(before)
  expect(before.isRunning).toBe(true)
})

test.concurrent('a stale failover forgets an acknowledged write, and none before it', { timeout: 60_000 }, async () => {
  await using set = await startSentinel()
  const master = await set.master()
  await master.call('SET', 'before', 'kept')
  const promoted = await set.staleFailover(() => master.call('SET', 'meanwhile', 'forgotten'))
  expect(await promoted.call('MGET', 'before', 'meanwhile')).toEqual(['kept', null])
})
