import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Advice, connect, type LeaseEvents, subscribe } from '../../src/index.ts'
import { startProxy } from '../../src/lab/servers/proxy.ts'
import { startRedis } from '../../src/lab/servers/redis.ts'

const LEASES = 20
const TIMES = 6

/** What is advised after 120 renewals of leases of this ttl. */
async function adviceOver(url: string, ttl: number): Promise<Advice> {
  await using locks = await connect(url, { ttl })
  const leases = await Promise.all(Array.from({ length: LEASES }, (_, i) => locks.acquire(`name ${i}`)))
  for (let i = 0; i < TIMES; i += 1) await Promise.all(leases.map(lease => lease.extend()))
  await Promise.all(leases.map(lease => lease.release()))
  return locks.advice()
}

test('over Redis the advice follows the delay of the network, and a ttl that is too short is told', async () => {
  await using redis = await startRedis()
  await using proxy = await startProxy(redis)
  const heard: LeaseEvents['ttl_too_short'][] = []
  onTestFinished(subscribe('ttl_too_short', event => heard.push(event)))
  proxy.up.delay(60)
  proxy.down.delay(60)
  const { heartbeats, latency, leastTtl } = await adviceOver(`redis://${proxy.host}:${proxy.port}`, 1_150)
  expect(heartbeats).toBeGreaterThanOrEqual(LEASES * TIMES)
  expect(latency?.p50).toBeGreaterThanOrEqual(119)
  expect(leastTtl).toBeGreaterThanOrEqual(1_190)
  expect(heard.map(({ lease }) => lease.ttl)).toEqual([1_150])
})

test('over SQLite the advice is no less than what is sensible there', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-advice-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const advice = await adviceOver(`sqlite:${join(folder, 'leases.db')}`, 60_000)
  expect(advice.heartbeats).toBe(LEASES * TIMES)
  expect(advice.leastTtl).toBeGreaterThanOrEqual(200)
  expect(advice.silence).toBeGreaterThanOrEqual((advice.latency?.worst ?? 0) * 0.98)
})
