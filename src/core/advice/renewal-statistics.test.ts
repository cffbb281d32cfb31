import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { refused, type Stage, stage } from '../../../test/scripted-store.ts'
import { subscribe } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import type { LeaseEvents } from '../../contract/lease-events.ts'
import { createLocks, StoreLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { LoopDelay } from './loop-delay.ts'

/** Locks whose renewals each take as long as `latency` says. */
function slow(latency: () => number): Stage {
  const set = stage({ heartbeat: false })
  set.store.rule('renew', async forward => {
    const grant = await forward()
    await new Promise<void>(resolve => set.clock.after(latency(), resolve))
    return grant
  })
  return set
}

async function renew(lease: Lease, { clock }: Stage, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    const renewed = lease.extend()
    await clock.advance(500)
    await renewed
  }
}

function warnings(): LeaseEvents['ttl_too_short'][] {
  const heard: LeaseEvents['ttl_too_short'][] = []
  onTestFinished(subscribe('ttl_too_short', event => heard.push(event)))
  return heard
}

test('without heartbeats there is no advice, and the advice says so', () => {
  expect(stage().locks.advice()).toEqual({
    heartbeats: 0,
    failed: 0,
    latency: undefined,
    unresponsiveness: 0,
    loopDelay: 0,
    leastTtl: undefined,
    reason: 'too few heartbeats: 0 were answered, 100 are needed',
  })
})

test('the hundredth heartbeat brings the advice', async () => {
  let count = 0
  const set = slow(() => (++count === 50 ? 400 : 40))
  const lease = await set.locks.acquire('a', { ttl: 60_000 })
  await renew(lease, set, 99)
  expect(set.locks.advice()).toMatchObject({ heartbeats: 99, leastTtl: undefined })
  await renew(lease, set, 1)
  const advice = set.locks.advice()
  expect(advice).toMatchObject({ heartbeats: 100, failed: 0, unresponsiveness: 400, leastTtl: 1_329 })
  expect(advice.reason).toBe(
    'p99 40 ms, unresponsive 400 ms, worst loop delay 0 ms: ttl >= 1329 ms, to tolerate these and one lost heartbeat',
  )
  const { p50, p99, worst } = advice.latency ?? expect.fail('no latency')
  for (const [value, exact] of [
    [p50, 40],
    [p99, 40],
    [worst, 400],
  ] as const)
    expect(Math.abs(value - exact)).toBeLessThan(exact / 100)
  expect(JSON.parse(JSON.stringify(advice))).toEqual(advice)
})

test('fewer than a thousand heartbeats have no p999, which would be the worst of them', async () => {
  let count = 0
  const set = slow(() => (++count === 50 ? 400 : 40))
  const lease = await set.locks.acquire('a', { ttl: 60_000 })
  await renew(lease, set, 999)
  expect(set.locks.advice().latency).toMatchObject({ p999: undefined, worst: expect.closeTo(400, -1) })
  await renew(lease, set, 1)
  expect(set.locks.advice().latency?.p999).toBeCloseTo(40, 0)
})

test('consecutive failures are one unresponsiveness, from the first failed request to the next answer', async () => {
  const set = stage({ ttl: 60_000 })
  const { locks, store, clock } = set
  await locks.acquire('a')
  await clock.advance(20_000)
  store.rule('renew', refused)
  await clock.advance(17_500 + 4_000) // the beat, and retries every half second
  store.restore('renew')
  await clock.advance(1_000)
  const { failed, unresponsiveness, heartbeats } = locks.advice()
  expect({ failed, unresponsiveness, heartbeats }).toEqual({ failed: 9, unresponsiveness: 4_500, heartbeats: 2 })
})

test('the unresponsiveness that lost a lease ends with it, not at the next renewal', async () => {
  const { locks, store, clock } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', refused)
  await clock.advance(9_000)
  expect(lease.signal.aborted).toBe(true)
  const { unresponsiveness } = locks.advice()
  expect(unresponsiveness).toBeGreaterThan(6_000)
  expect(unresponsiveness).toBeLessThan(9_000)
  store.restore('renew')
  await clock.advance(100_000)
  await locks.acquire('a')
  await clock.advance(9_000)
  expect(locks.advice()).toMatchObject({ unresponsiveness })
})

test('a request that fails after the loss of its lease begins no unresponsiveness', async () => {
  const { locks, store, clock } = stage({ ttl: 9_000, heartbeat: false })
  const lease = await locks.acquire('a')
  store.rule('renew', () => new Promise(() => {}))
  await clock.advance(8_000)
  lease.extend().catch(() => {})
  await clock.advance(3_000)
  store.restore('renew')
  await clock.advance(100_000)
  const next = await locks.acquire('a')
  await next.extend()
  expect(locks.advice()).toMatchObject({ failed: 1, unresponsiveness: 0 })
})

test('a lost heartbeat whose retry is answered is a failure, not unresponsiveness', async () => {
  const { locks, store, clock } = stage({ ttl: 9_000 })
  await locks.acquire('a')
  let count = 0
  store.rule('renew', forward => (++count === 1 ? new Promise(() => {}) : forward()))
  await clock.advance(9_000)
  expect(locks.advice()).toMatchObject({ failed: 1, unresponsiveness: 0 })
})

test('a ttl below ten times the p99 is reported once, another ttl at least a minute later', async () => {
  const heard = warnings()
  const set = slow(() => 150)
  const first = await set.locks.acquire('a', { ttl: 1_499 })
  await renew(first, set, 99)
  expect(heard).toEqual([])
  await renew(first, set, 1)
  expect(heard).toEqual([{ lease: first, p99: expect.closeTo(150, -1), leastTtl: expect.any(Number) }])
  expect(heard[0]?.leastTtl).toBeGreaterThanOrEqual(1_500)
  const second = await set.locks.acquire('b', { ttl: 1_200 })
  await renew(second, set, 118)
  expect(heard).toHaveLength(1)
  await renew(second, set, 4)
  const third = await set.locks.acquire('c', { ttl: 1_499 })
  await renew(third, set, 130)
  expect(heard.map(({ lease }) => lease.name)).toEqual(['a', 'b'])
})

test('a ttl above ten times the p99 is not reported, whatever single renewals took', async () => {
  const heard = warnings()
  let count = 0
  const set = slow(() => (++count % 150 === 0 ? 350 : 100))
  const lease = await set.locks.acquire('a', { ttl: 1_100 })
  await renew(lease, set, 400)
  expect(heard).toEqual([])
})

test('a blocked event loop is measured while a lease is renewed, not while none is held', async () => {
  await using locks = createLocks(memory())
  const lease = await locks.acquire('a')
  await lease.extend()
  await samples()
  block(300)
  await samples()
  const { loopDelay } = locks.advice()
  expect(loopDelay).toBeGreaterThanOrEqual(250)
  await lease.release()
  block(loopDelay + 1_500)
  await samples()
  const again = await locks.acquire('a')
  await again.extend()
  await samples()
  expect(locks.advice().loopDelay).toBeLessThan(loopDelay + 1_400)
  await again.release()
})

test('an answer after the loss of its lease does not start to measure the event loop', async () => {
  const loopDelay = new LoopDelay()
  onTestFinished(() => loopDelay.stop())
  const clock = new VirtualClock()
  const store = memory({ clock })
  const renew = store.renew.bind(store)
  store.renew = async (claim, signal) => {
    const grant = await renew(claim, signal)
    await new Promise<void>(resolve => clock.after(300, resolve))
    return grant
  }
  const locks = new StoreLocks(store, { ttl: 1_000, heartbeat: false }, { clock, random: Math.random, loopDelay })
  const lease = await locks.acquire('a')
  await clock.advance(900)
  lease.extend().catch(() => {})
  await clock.advance(300)
  expect(lease.signal.aborted).toBe(true)
  expect(locks.advice().heartbeats).toBe(1)
  expect(loopDelay.isRunning).toBe(false)
  const next = await locks.acquire('b')
  void next.extend()
  await clock.advance(300)
  expect(loopDelay.isRunning).toBe(true)
  await next.release()
  expect(loopDelay.isRunning).toBe(false)
})

test('a process that measures its event loop can end', async () => {
  const program = `
    import { createLocks } from ${JSON.stringify(new URL('../../index.ts', import.meta.url).href)}
    import { memory } from ${JSON.stringify(new URL('../../stores/memory/index.ts', import.meta.url).href)}
    const locks = createLocks(memory())
    const lease = await locks.acquire('a')
    await lease.extend()
    console.log(locks.advice().heartbeats)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 20_000,
  })
  expect(stdout).toBe('1\n')
})

/** Until the loop was sampled twice: a delay is the time between two samples. */
function samples(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 120))
}

function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}
