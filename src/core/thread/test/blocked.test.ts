import { type ChildProcess, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { inTime, TooSlow } from '../../../../lab/conformance/timing.ts'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { stateOf } from '../../../../lab/servers/process.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { connect, type Locks, type LocksDefaults } from '../../../index.ts'
import type { Told } from './holder.ts'

const HOLDER = fileURLToPath(new URL('./holder.ts', import.meta.url))
const TTL = 1_000
/** Milliseconds that a busy machine may add to a bound. */
const SLACK = 3_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

const stores = {
  redis: () => server.url,
  sqlite: () => `sqlite:${join(newFolder('thread'), 'leases.db')}`,
}

interface Holder {
  readonly child: ChildProcess
  /** When it began to block. */
  readonly since: bigint
  readonly token: string
  /** Its next message. */
  next(): Promise<Told>
}

/** Another process that holds the name, and blocks. */
async function hold(args: readonly (string | number)[], defaults: LocksDefaults): Promise<Holder> {
  const given = [...args.map(String), JSON.stringify({ heartbeat: 'thread', ttl: TTL, ...defaults })]
  const child = spawn(process.execPath, [HOLDER, ...given], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = on(createInterface({ input: child.stdout }), 'line', { close: ['close'] })
  const next = async (): Promise<Told> => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the holder has ended')
    return JSON.parse(value[0])
  }
  const { state, at, token = '' } = await next()
  expect(state).toBe('holds')
  return { child, since: BigInt(at), token, next }
}

async function rival(url: string): Promise<Locks> {
  const locks = await connect(url)
  onTestFinished(() => locks.close({ grace: 0 }))
  return locks
}

const now = (): bigint => process.hrtime.bigint()
const ms = (from: bigint, to: bigint | string | undefined): number => Number(BigInt(to ?? 0) - from) / 1e6

describe.each(Object.entries(stores))('over %s', (_, urlOf) => {
  test('a process that is blocked for three ttls keeps its lease, knows it at once, and releases it', async () => {
    const url = urlOf()
    const locks = await rival(url)
    const holder = await hold([url, 'a', 'sleeps', 3 * TTL], { maxBlocked: 60_000 })
    const waiting = locks.acquire('a')
    const ranOn = await holder.next()
    expect(ranOn).toMatchObject({ state: 'ran on', aborted: false })
    expect(ranOn.code).toBeUndefined()
    expect(ranOn.remaining).toBeGreaterThan(0)
    const lease = await waiting
    expect(now()).toBeGreaterThan(BigInt(ranOn.at))
    expect(await holder.next()).toMatchObject({ state: 'released' })
    await once(holder.child, 'close')
    await lease.release()
  }, 60_000)

  test('a process that is blocked for longer than its limit loses the lease in time, and its first check throws', async () => {
    const url = urlOf()
    const locks = await rival(url)
    const maxBlocked = 700
    const holder = await hold([url, 'a', 'sleeps', maxBlocked + TTL + 200], { maxBlocked })
    const ranOn = await holder.next()
    expect(ranOn).toMatchObject({ code: 'LEASE_LOST', aborted: true, remaining: 0 })
    await using lease = await locks.acquire('a')
    expect(lease.token).toBeGreaterThan(BigInt(holder.token))
  }, 60_000)

  test('a lost lease passes on after its holder could know, and within its limit and the ttl', async () => {
    const url = urlOf()
    const locks = await rival(url)
    const maxBlocked = 2 * TTL
    await inTime(TTL / 2, async () => {
      const holder = await hold([url, 'a', 'looks', 60_000], { maxBlocked })
      await using lease = await locks.acquire('a')
      const passedOn = now()
      const ranOn = await holder.next()
      expect(ranOn).toMatchObject({
        code: 'LEASE_LOST',
        message: expect.stringMatching(
          /^the lease "a" was not renewed in time \(the event loop was blocked for \d+\.\d s/,
        ),
        aborted: true,
      })
      expect(BigInt(ranOn.last ?? 0)).toBeLessThan(passedOn)
      expect(lease.token).toBeGreaterThan(BigInt(holder.token))
      // It survives nine tenths of the limit, and then the rest of the lease; less if its thread had no processor.
      const survived = ms(holder.since, ranOn.last)
      if (survived <= 0.9 * maxBlocked) throw new TooSlow(`it was renewed for ${survived} ms`)
      expect(ms(holder.since, passedOn)).toBeLessThan(maxBlocked + TTL + SLACK)
    })
  }, 120_000)

  test('a break by another process is noticed while the holder is blocked', async () => {
    const url = urlOf()
    const locks = await rival(url)
    await inTime(TTL / 2, async () => {
      const holder = await hold([url, 'a', 'looks', 60_000], { maxBlocked: 60_000 })
      expect(await locks.break('a')).toBeTypeOf('bigint')
      expect(await holder.next()).toMatchObject({
        code: 'LEASE_LOST',
        message: 'the lease "a" is no longer held, because it expired at the store or was broken',
      })
    })
  }, 60_000)

  test('a process that hangs for ever loses its lease, and a killed one by its ttl whatever its limit', async () => {
    const url = urlOf()
    const locks = await rival(url)
    const stuck = await hold([url, 'a', 'is stuck', 0], { maxBlocked: TTL })
    const killed = await hold([url, 'b', 'is stuck', 0], { maxBlocked: 600_000 })
    await expect(locks.acquire('b', { wait: 2 * TTL })).rejects.toMatchObject({ code: 'BUSY' })
    killed.child.kill('SIGKILL')
    const start = now()
    await using freed = await locks.acquire('b')
    expect(ms(start, now())).toBeLessThan(2 * TTL + SLACK)
    await using left = await locks.acquire('a')
    expect(stuck.child.exitCode).toBeNull()
    expect([freed.name, left.name]).toEqual(['b', 'a'])
  }, 60_000)

  test('the first check of a process that was paused with all its threads throws', async () => {
    const url = urlOf()
    const locks = await rival(url)
    const holder = await hold([url, 'a', 'looks', 60_000], { maxBlocked: 60_000 })
    const pid = holder.child.pid ?? 0
    holder.child.kill('SIGSTOP')
    await until('it stands still', () => stateOf(pid) === 'T')
    await using lease = await locks.acquire('a')
    const passedOn = now()
    holder.child.kill('SIGCONT')
    const ranOn = await holder.next()
    expect(ranOn).toMatchObject({ code: 'LEASE_LOST', aborted: true })
    expect(BigInt(ranOn.last ?? 0)).toBeLessThan(passedOn)
    expect(lease.token).toBeGreaterThan(BigInt(holder.token))
  }, 60_000)
})

test('a server that dies while the holder is blocked ends the lease at the deadline', async () => {
  await using redis = await startRedis()
  const holder = await hold([redis.url, 'a', 'looks', 60_000], { maxBlocked: 60_000 })
  await redis.pause()
  const paused = now()
  const ranOn = await holder.next()
  expect(ranOn).toMatchObject({ code: 'LEASE_LOST', message: 'the lease "a" was not renewed in time', aborted: true })
  expect(ms(paused, ranOn.last)).toBeLessThan(TTL)
  redis.resume()
}, 60_000)
