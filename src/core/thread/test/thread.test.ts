import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { connect, createLocks, type LeaseEvents, type Locks, type LocksDefaults, subscribe } from '../../../index.ts'
import { memory } from '../../../stores/memory/index.ts'

const TTL = 2_000

/** The workers that this process started, in order. */
const workers: Worker[] = []
const note = (worker: Worker): void => void workers.push(worker)
beforeEach(() => {
  workers.length = 0
  process.on('worker', note)
})
afterEach(() => void process.off('worker', note))

const newUrl = (): string => `sqlite:${join(newFolder('thread'), 'leases.db')}`

async function open(url = newUrl(), defaults: LocksDefaults = {}): Promise<Locks> {
  const locks = await connect(url, { heartbeat: 'thread', ttl: TTL, maxBlocked: 60_000, ...defaults })
  onTestFinished(() => locks.close({ grace: 0 }))
  return locks
}

/** Collects events until the test ends. */
function listen<Name extends keyof LeaseEvents>(name: Name): LeaseEvents[Name][] {
  const heard: LeaseEvents[Name][] = []
  onTestFinished(subscribe(name, event => heard.push(event)))
  return heard
}

/** Nothing else runs in this thread meanwhile. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining("connect('redis://…')") }

describe('is refused', () => {
  test('for a store that was made from a client or a path', async () => {
    expect(() => createLocks(memory(), { heartbeat: 'thread' })).toThrow(expect.objectContaining(refusal))
    const locks = createLocks(memory())
    await expect(locks.acquire('a', { heartbeat: 'thread' })).rejects.toMatchObject(refusal)
    await expect(locks.tryAcquire('a', { heartbeat: 'thread' })).rejects.toMatchObject(refusal)
    await expect(locks.using('a', { heartbeat: 'thread' }, async () => {})).rejects.toMatchObject(refusal)
  })

  test('for memory, which no other thread shares', async () => {
    await expect(connect('memory:thread', { heartbeat: 'thread' })).rejects.toMatchObject(refusal)
    const locks = await connect('memory:thread')
    await expect(locks.acquire('a', { heartbeat: 'thread' })).rejects.toMatchObject(refusal)
  })
})

test('no thread is started before a lease needs it, and one serves all leases', async () => {
  const locks = await open(undefined, { heartbeat: true })
  await using first = await locks.acquire('a')
  expect(workers).toHaveLength(0)
  await using second = await locks.acquire('b', { heartbeat: 'thread' })
  await locks.using('c', { heartbeat: 'thread' }, async lease => lease.assertHeld())
  const derived = locks.with({ heartbeat: 'thread' })
  await derived.using('d', async lease => lease.assertHeld())
  await derived.close()
  expect(workers).toHaveLength(1)
  block(2 * TTL)
  expect(() => first.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  second.assertHeld()
})

test('the advice includes its renewals, also those while the event loop was blocked', async () => {
  const locks = await open()
  const lease = await locks.acquire('a')
  await lease.extend()
  block(3 * TTL)
  const { heartbeats, latency } = locks.advice()
  expect(heartbeats).toBeGreaterThanOrEqual(5)
  expect(latency?.p50).toBeGreaterThan(0)
  await lease.release()
  expect(locks.advice().heartbeats).toBeGreaterThanOrEqual(heartbeats)
})

test('over Redis its batches are counted, and so is a late renewal that the server refuses', async () => {
  await using redis = await startRedis()
  await using proxy = await startProxy(redis)
  const locks = await open(`redis://${proxy.host}:${proxy.port}`, { ttl: 3 * TTL })
  const [batches, stale] = [listen('batch_sent'), listen('stale_request_refused')]
  const lease = await locks.acquire('a')
  const before = batches.length
  await lease.extend()
  await until('its batch is told', () => batches.length > before)
  proxy.up.hold()
  const begun = performance.now()
  await expect(lease.extend()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await until('its time is over by every clock', () => performance.now() > begun + 1.3 * TTL)
  proxy.up.pass()
  await until('it is refused', () => stale.length > 0)
  expect(stale[0]).toEqual({ store: 'redis', reason: 'late' })
  await lease.release()
})

test('events of the time while the event loop was blocked are reported when it runs again', async () => {
  const locks = await open()
  const [renewed, lost] = [listen('heartbeat'), listen('lease_lost')]
  const lease = await locks.acquire('a')
  block(3 * TTL)
  await until('all is told', () => renewed.length >= 5)
  expect(renewed[0]).toMatchObject({ lease, latency: expect.any(Number), margin: expect.any(Number) })
  expect(lost).toEqual([])
  await lease.release()
})

test('a loss aborts the signal and is reported without a check', async () => {
  const url = newUrl()
  const [locks, other] = [await open(url), await open(url, { heartbeat: true })]
  const lost = listen('lease_lost')
  const lease = await locks.acquire('a', { ttl: 60_000, maxBlocked: 60_000 })
  const { signal } = lease
  await lease.extend(TTL)
  await other.break('a')
  await until('the signal aborts', () => signal.aborted)
  expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', message: expect.stringContaining('broken') })
  expect(lost).toHaveLength(1)
  expect(await lease.release()).toBe('lost')
})

test('P5: renewals by the thread can be stopped; the lease is held until its deadline, and can be extended', async () => {
  const locks = await open()
  const lease = await locks.acquire('a')
  await until('the thread renews', () => locks.advice().heartbeats > 0)
  lease.stopRenewing()
  expect(lease.remaining).toBeGreaterThan(0)
  expect(await lease.extend(60_000)).toBeGreaterThan(50_000)
  await lease.extend(TTL)
  expect(await lease.ended).toBe('lost')
  const next = await locks.acquire('a', { wait: 5_000 })
  expect(next.token).toBeGreaterThan(lease.token)
  expect(await next.release()).toBe('released')
})

test('an extension applies to the renewals in the thread, and a shorter one counts at once', async () => {
  const locks = await open()
  const lease = await locks.acquire('a')
  expect(await lease.extend(60_000)).toBeGreaterThan(50_000)
  expect(lease.ttl).toBe(60_000)
  expect(await lease.extend(TTL)).toBeLessThanOrEqual(TTL)
  block(3 * TTL)
  expect(lease.remaining).toBeGreaterThan(0)
  expect(lease.remaining).toBeLessThanOrEqual(TTL)
  expect(await lease.extend()).toBeGreaterThan(0)
  await lease.release()
})

test('it is still renewed in time after its ttl was made much shorter', async () => {
  const locks = await open(undefined, { ttl: 10_000, maxBlocked: undefined })
  await using lease = await locks.acquire('a')
  await lease.extend(1_000)
  const end = performance.now() + 2_000
  while (performance.now() < end) {
    await new Promise(resolve => setTimeout(resolve, 10))
    lease.assertHeld()
  }
})

test('it can be extended and released right after a block for longer than its limit, while it is held', async () => {
  const locks = await open(undefined, { ttl: 3 * TTL, maxBlocked: 50 })
  const lease = await locks.acquire('a')
  block(TTL)
  expect(await lease.extend()).toBeGreaterThan(2 * TTL)
  block(TTL)
  await lease.release()
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
})

test('maxHold ends it also while the event loop is blocked', async () => {
  const url = newUrl()
  const [locks, other] = [await open(url), await open(url)]
  const lease = await locks.acquire('a', { maxHold: TTL })
  block(3 * TTL)
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'MAX_HOLD' }))
  await using next = await other.acquire('a', { wait: 0 })
  expect(next.token).toBeGreaterThan(lease.token)
})

test('a thousand leases come and go, and the thread has none left to renew', async () => {
  const locks = await open()
  const renewed = listen('heartbeat')
  const leases = await Promise.all(Array.from({ length: 1_000 }, (_, i) => locks.acquire(`${i}`, { ttl: 5 * TTL })))
  block(2 * TTL)
  await until('all were renewed', () => new Set(renewed.map(({ lease }) => lease)).size === 1_000)
  await Promise.all(leases.map(lease => lease.release()))
  renewed.length = 0
  block(2 * TTL)
  await new Promise(resolve => setImmediate(resolve))
  expect(renewed).toEqual([])
}, 60_000)

describe('a thread that ends', () => {
  test('leaves its leases to the main thread, which warns, and the next lease starts another', async () => {
    const locks = await open()
    const [failed, renewed] = [listen('heartbeat_failed'), listen('heartbeat')]
    const lease = await locks.acquire('a')
    await workers[0]?.terminate()
    await until('it is told', () => failed.length > 0)
    expect(failed[0]).toMatchObject({ lease, error: { code: 'STORE_UNAVAILABLE' } })
    expect(failed[0]?.error.message).toBe('the heartbeat thread has ended; the main thread renews its leases')
    await until('it is renewed for longer than a ttl', () => renewed.length > 4)
    lease.assertHeld()
    await using next = await locks.acquire('b')
    expect(workers).toHaveLength(2)
    block(2 * TTL)
    next.assertHeld()
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  })

  test('before it began rejects the acquire, and the next one starts another', async () => {
    const locks = await open()
    process.once('worker', worker => void worker.terminate())
    const error = {
      code: 'STORE_UNAVAILABLE',
      message: 'the heartbeat thread could not be started; heartbeat: true needs none',
    }
    await expect(locks.acquire('a')).rejects.toMatchObject(error)
    await using lease = await locks.acquire('a')
    expect(lease.remaining).toBeGreaterThan(0)
    expect(workers).toHaveLength(2)
  })

  test('during an extension fails that, and the lease is held', async () => {
    const locks = await open()
    const lease = await locks.acquire('a', { ttl: 5 * TTL })
    const extended = lease.extend()
    void workers[0]?.terminate()
    await extended.catch(error => expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' }))
    lease.assertHeld()
    await lease.release()
  })
})

test('close ends the thread, with and without held leases', async () => {
  for (const held of [true, false]) {
    const locks = await open()
    const lease = await locks.acquire('a')
    if (!held) await lease.release()
    await locks.close({ grace: 0 })
    expect(workers.pop()?.threadId).toBe(-1)
    expect(lease.remaining > 0).toBe(held)
    await expect(lease.extend()).rejects.toMatchObject({ code: 'CLOSED' })
    expect(lease.remaining > 0).toBe(held)
    await expect(locks.acquire('a')).rejects.toMatchObject({ code: 'CLOSED' })
  }
})

test('an acquire that waits for the thread to start can be aborted, and closed', async () => {
  const locks = await open()
  const controller = new AbortController()
  const aborted = locks.acquire('a', { signal: controller.signal })
  const closed = locks.acquire('b')
  await until('the thread starts', () => workers.length > 0, { every: 0 })
  controller.abort(new Error('never mind'))
  await expect(aborted).rejects.toThrow('never mind')
  const closing = locks.close()
  await expect(closed).rejects.toMatchObject({ code: 'CLOSED' })
  await closing
  expect(workers[0]?.threadId).toBe(-1)
})

describe('a process', () => {
  const index = JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../../index.ts')))
  const run = (body: string, flags: readonly string[] = []) => {
    const url = JSON.stringify(newUrl())
    const source = `
      import { connect } from ${index}
      const locks = await connect(${url}, { heartbeat: 'thread', ttl: ${TTL}, maxBlocked: 60_000 })
      ${body}`
    const args = [...flags, '--unhandled-rejections=strict', '--input-type=module', '-e', source]
    return promisify(execFile)(process.execPath, args, { timeout: 50_000 })
  }

  test('ends by itself although its thread renews a lease, and also without leases', async () => {
    const stderr = expect.stringContaining('this process ends while it holds the lease "a"')
    expect(await run(`await locks.acquire('a'); console.log('done')`)).toEqual({ stdout: 'done\n', stderr })
    const released = `await (await locks.acquire('a')).release(); console.log('done')`
    expect(await run(released)).toEqual({ stdout: 'done\n', stderr: '' })
  })

  test('stays alive during using, and until extensions and releases settle', async () => {
    const body = `
      await locks.using('a', lease => new Promise(resolve => setTimeout(resolve, ${2 * TTL}).unref())).catch(e => console.log(e.code))
      console.log('done')`
    // Nothing but the lease keeps it alive.
    expect(await run(body)).toEqual({ stdout: 'done\n', stderr: '' })
  })

  test('may change its folder before the thread opens the file', async () => {
    const body = `
      process.chdir(${JSON.stringify(newFolder('thread'))})
      const here = await connect('sqlite:here.db', { heartbeat: 'thread', ttl: ${TTL}, maxBlocked: 60_000 })
      process.chdir('/')
      const lease = await here.acquire('a')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${2 * TTL})
      lease.assertHeld()
      await lease.release()
      console.log('done')`
    expect(await run(body)).toEqual({ stdout: 'done\n', stderr: '' })
  })

  test('may be started with options that threads do not accept', async () => {
    const flags = ['--import', 'data:text/javascript,console.log("imported")', '--max-old-space-size=200', '--title=x']
    const body = `await locks.using('a', lease => lease.assertHeld()); console.log('done')`
    expect(await run(body, flags)).toEqual({ stdout: 'imported\ndone\n', stderr: '' })
  })

  test('that may not start threads gets the name of the required flag', async () => {
    const flags = ['--permission', '--allow-fs-read=*', '--allow-fs-write=*']
    const body = `await locks.acquire('a').catch(({ code, message }) => console.log(code, message))`
    const { stdout } = await run(body, flags)
    expect(stdout).toBe(
      "INVALID_ARGUMENT heartbeat: 'thread' needs a worker thread: start Node with --allow-worker, or use heartbeat: true\n",
    )
  })
})

test('a worker of the program may have locks with their own thread', async () => {
  const { Worker } = await import('node:worker_threads')
  const index = JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../../index.ts')))
  const source = `
    import(${index}).then(async ({ connect }) => {
      const locks = await connect(${JSON.stringify(newUrl())}, { heartbeat: 'thread', ttl: ${TTL}, maxBlocked: 60_000 })
      const lease = await locks.acquire('a')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${2 * TTL})
      lease.assertHeld()
      await locks.close({ grace: 0 })
      require('node:worker_threads').parentPort.postMessage('held')
    })`
  const worker = new Worker(source, { eval: true })
  expect(await once(worker, 'message')).toEqual(['held'])
  await worker.terminate()
})
