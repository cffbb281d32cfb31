import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const index = pathToFileURL(`${import.meta.dirname}/../index.ts`)
const stores = pathToFileURL(`${import.meta.dirname}/../stores`)

/** Runs a module in its own process until it ends by itself. An unhandled rejection is an error. */
function run(body: string): Promise<Ended> {
  const source = `
    import { createLocks, subscribe } from ${JSON.stringify(index)}
    import { memory } from '${stores}/memory/index.ts'
    const locks = createLocks(memory(), { ttl: 60_000 })
    const say = (...words) => process.stdout.write(words.join(' ') + String.fromCharCode(10))
    const never = new Promise(() => {})
    ${body}
  `
  return new Promise(resolve => {
    const given = ['--unhandled-rejections=strict', '--no-warnings', '--input-type=module', '-e', source]
    const child = execFile(process.execPath, given, { timeout: 50_000 }, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out: out.trim(), err }),
    )
  })
}

test('a process without other work ends, although it holds leases that are renewed', async () => {
  const ended = await run(`
    await locks.acquire('a')
    await locks.acquire('b', { heartbeat: false, maxHold: 50_000 })
    say('done')
  `)
  expect(ended).toEqual({ code: 0, out: 'done', err: '' })
})

test('a process that ends while it holds leases says so, also in front of an await that nothing will settle', async () => {
  const ended = await run(`
    process.on('warning', ({ code, message }) => say(code, message))
    const derived = locks.with({ ttl: 50_000 })
    const closed = createLocks(memory())
    await closed.acquire('closed')
    await closed.close({ grace: 0 })
    await (await locks.acquire('released')).release()
    await derived.acquire('b')
    ;(await locks.acquire('runs out')).stopRenewing()
    const lease = await locks.acquire('a')
    await lease.ended
  `)
  const text = (name: string): string =>
    `HOLDFAST_LOOP_EMPTY this process ends while it holds the lease "${name}": nothing else keeps it alive, and a lease ` +
    'does not. Run the work in locks.using, or release() first'
  expect(ended).toMatchObject({ code: 13, out: `${text('a')}\n${text('b')}` })
})

test('a process that waits for a lease, or withdraws, stays alive', async () => {
  const ended = await run(`
    await locks.acquire('a')
    const started = performance.now()
    await locks.acquire('a', { wait: 1_000 }).catch(error => say(error.code))
    say(performance.now() - started >= 999)
    await Promise.race([never, new Promise(resolve => locks.acquire('a', { wait: 100 }).catch(resolve))])
  `)
  expect(ended).toEqual({ code: 0, out: 'BUSY\ntrue', err: '' })
})

test('a process that releases to an unresponsive store stays alive until the release is given up', async () => {
  const ended = await run(`
    const store = memory()
    store.release = () => never
    const mute = createLocks(store, { ttl: 1_000 })
    const lease = await mute.acquire('a', { heartbeat: false })
    say(await lease.release())
    await mute.close()
  `)
  expect(ended).toEqual({ code: 0, out: 'unknown', err: '' })
})

test('S5: the process may end before a withdrawal in the background is given up', async () => {
  const ended = await run(`
    const store = memory()
    store.release = () => never
    subscribe('release_failed', () => say('given up'))
    const mute = createLocks(store, { ttl: 20_000 })
    const lease = await mute.acquire('a', { maxHold: 10 })
    while (!lease.signal.aborted) await new Promise(resolve => setTimeout(resolve, 10))
    say(await lease.release())
  `)
  expect(ended).toEqual({ code: 0, out: 'lost', err: '' })
})

test('the first check of a lease is right after the event loop was blocked for twice the ttl', async () => {
  const ended = await run(`
    const lease = await locks.acquire('a', { ttl: 300 })
    const told = []
    lease.signal.addEventListener('abort', () => told.push(lease.signal.reason.code))
    const until = performance.now() + 600
    while (performance.now() < until);
    try { lease.assertHeld() } catch (error) { say(error.code, lease.remaining, ...told) }
    say(await lease.release())
    const job = locks.using('b', { ttl: 100 }, () => {
      const until = performance.now() + 200
      while (performance.now() < until);
      return 'done'
    })
    await job.catch(error => say(error.code, error.result))
  `)
  expect(ended).toEqual({ code: 0, out: 'LEASE_LOST 0 LEASE_LOST\nlost\nLEASE_LOST done', err: '' })
})

test('a lease is renewed on the real clocks, and its loss is reported without a check', async () => {
  const ended = await run(`
    const lease = await locks.acquire('a', { ttl: 3_000 })
    const { signal } = lease
    await new Promise(resolve => setTimeout(resolve, 3_500))
    lease.assertHeld()
    await locks.break('a')
    const server = setInterval(() => {}, 1_000) // leases alone keep no process alive
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    say(signal.reason.code)
    clearInterval(server)
  `)
  expect(ended).toEqual({ code: 0, out: 'LEASE_LOST', err: '' })
})

test('an unobserved loss, failure or close is no unhandled rejection', async () => {
  const ended = await run(`
    const server = setInterval(() => {}, 1_000) // leases alone keep no process alive
    const store = memory()
    const fragile = createLocks(store, { ttl: 1_000 })
    await fragile.acquire('lost')
    await fragile.acquire('abandoned')
    const job = fragile.using('used', ({ signal }) => new Promise(resolve => signal.addEventListener('abort', resolve)))
    const wait = fragile.acquire('lost', { signal: AbortSignal.timeout(20) })
    await wait.catch(error => say(error.name))
    for (const verb of ['acquire', 'renew', 'release', 'watch', 'break']) store[verb] = () => Promise.reject(new Error(verb))
    await job.catch(error => say(error.code))
    await fragile.tryAcquire('x').catch(error => say(error.code))
    await fragile.close({ grace: 10 })
    clearInterval(server)
  `)
  expect(ended).toEqual({ code: 0, out: 'TimeoutError\nLEASE_LOST\nSTORE_UNAVAILABLE', err: '' })
})

test('a listener that throws causes an uncaught exception, and the lease continues', async () => {
  const ended = await run(`
    process.on('uncaughtException', error => say('uncaught', error.message))
    const boom = at => { throw new Error(at) }
    subscribe('lease_acquired', () => boom('acquired'))
    subscribe('lease_lost', () => boom('lost'))
    const lease = await locks.acquire('a')
    lease.assertHeld()
    lease.signal.addEventListener('abort', () => boom('abort'))
    await locks.break('a')
    say(await lease.release())
    await locks.close()
    say((await Promise.allSettled([locks.acquire('b')]))[0].reason.code)
  `)
  expect(ended.code).toBe(0)
  expect(ended.out.split('\n').sort()).toEqual([
    'CLOSED',
    'lost',
    'uncaught abort',
    'uncaught acquired',
    'uncaught lost',
  ])
})

test('a process whose work waits only for the signal of its lease stays alive until it aborts', async () => {
  const ended = await run(`
    const work = lease => new Promise((_, reject) => lease.signal.addEventListener('abort', () => reject(lease.signal.reason)))
    await locks.using('a', { ttl: 300, heartbeat: false }, work).catch(error => say(error.code))
  `)
  expect(ended).toEqual({ code: 0, out: 'LEASE_LOST', err: '' })
})

test('a process that releases during a hanging renewal stays alive until the release settles', async () => {
  const ended = await run(`
    const store = memory()
    store.renew = () => never
    const slow = createLocks(store, { ttl: 600 })
    const lease = await slow.acquire('a')
    await new Promise(resolve => setTimeout(resolve, 250))
    await lease.release()
    say('released')
  `)
  expect(ended).toEqual({ code: 0, out: 'released', err: '' })
})
