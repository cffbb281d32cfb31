import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { type Advice, connect, type LeaseEvents, subscribe } from '../../../index.ts'

const LEASES = 20
const TIMES = 6

/** The advice after 121 renewals of leases with this ttl. */
async function adviceOver(url: string, ttl: number, heartbeat: true | 'thread' = true): Promise<Advice> {
  await using locks = await connect(url, { ttl, heartbeat })
  await using first = await locks.acquire('first', { ttl: 60_000 })
  await first.extend() // a thread connects for it
  const leases = await Promise.all(Array.from({ length: LEASES }, (_, i) => locks.acquire(`name ${i}`)))
  for (let i = 0; i < TIMES; i += 1) await Promise.all(leases.map(lease => lease.extend()))
  await Promise.all(leases.map(lease => lease.release()))
  return locks.advice()
}

test.each([
  ['in the event loop', true],
  ['in a thread', 'thread'],
] as const)(
  'over Redis, %s, the advice follows the delay of the network, and a ttl that is too short is told',
  async (_, heartbeat) => {
    await using redis = await startRedis()
    await using proxy = await startProxy(redis)
    const heard: LeaseEvents['ttl_too_short'][] = []
    onTestFinished(subscribe('ttl_too_short', event => heard.push(event)))
    // Long, so that the ttl that is too short is not too short for a busy machine.
    proxy.up.delay(180)
    proxy.down.delay(180)
    const { heartbeats, latency, leastTtl } = await adviceOver(`redis://${proxy.host}:${proxy.port}`, 3_450, heartbeat)
    expect(heartbeats).toBeGreaterThanOrEqual(LEASES * TIMES)
    expect(latency?.p50).toBeGreaterThanOrEqual(359)
    expect(leastTtl).toBeGreaterThanOrEqual(3_570)
    expect(heard.map(({ lease }) => lease.ttl)).toEqual([3_450])
  },
)

test.each([true, 'thread'] as const)(
  'over SQLite, with heartbeat %s, the advice is no less than what is sensible there',
  async heartbeat => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-advice-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const advice = await adviceOver(`sqlite:${join(folder, 'leases.db')}`, 60_000, heartbeat)
    expect(advice.heartbeats).toBe(LEASES * TIMES + 1)
    expect(advice.leastTtl).toBeGreaterThanOrEqual(200)
    expect(advice.unresponsiveness).toBeGreaterThanOrEqual((advice.latency?.worst ?? 0) * 0.98)
  },
)
