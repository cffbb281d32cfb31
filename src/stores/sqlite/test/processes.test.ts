import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { until } from '../../../../lab/servers/until.ts'
import { look } from '../../../../test/support.ts'
import type { LeaseRecord, Store } from '../../../contract/store.ts'
import { sqlite } from '../index.ts'
import { newClaim } from './claim.ts'
import { StoreProcess } from './process.ts'

let path: string
const never = new AbortController().signal

beforeEach(() => {
  path = join(newFolder('sqlite'), 'leases.db')
})

function newProcess(file = path): StoreProcess {
  const other = new StoreProcess(file)
  onTestFinished(() => other[Symbol.asyncDispose]())
  return other
}

function newStore(): Store {
  const store = sqlite(path)
  onTestFinished(() => store[Symbol.asyncDispose]())
  return store
}

async function records(store: Store, prefix: string): Promise<LeaseRecord[]> {
  return look(store, { prefix })
}

async function waiters(store: Store, name: string): Promise<number> {
  return (await records(store, name)).filter(record => record.state === 'waiting').length
}

/** Processes that have opened the file. One that starts later runs alone at the end. */
async function started(count: number): Promise<ReturnType<typeof newProcess>[]> {
  const all = Array.from({ length: count }, () => newProcess())
  await Promise.all(all.map((other, index) => other.ask('acquire', newClaim(`started ${index}`))))
  return all
}

test('processes that start at the same time without a file create one together', async () => {
  const all = Array.from({ length: 6 }, () => newProcess())
  const grants = await Promise.all(all.map((other, index) => other.ask('acquire', newClaim(`name ${index}`))))
  expect(new Set(grants.map(grant => grant.held && grant.token)).size).toBe(6)
  expect(await records(newStore(), 'name')).toHaveLength(6)
})

test('no process starves while all of them write at full speed', async () => {
  const all = await started(4)
  const results = await Promise.all(all.map(other => other.ask('hammer', 2_000)))
  const pairs = results.map(result => result.pairs)
  expect(Math.min(...pairs)).toBeGreaterThan(Math.max(...pairs) / 10)
})

test('of several processes one holds at a time, each with a higher token', async () => {
  const all = await started(4)
  const perProcess = await Promise.all(all.map(other => other.ask('takeTurns', 'shared', 1_500)))
  const counts = perProcess.map(holdings => holdings.length)
  expect(Math.min(...counts)).toBeGreaterThan(Math.max(...counts) / 10)
  const holdings = perProcess.flat().sort((a, b) => Number(a.from - b.from))
  for (const [index, holding] of holdings.entries()) {
    const next = holdings[index + 1]
    if (!next) continue
    expect(next.from).toBeGreaterThan(holding.to)
    expect(next.token).toBeGreaterThan(holding.token)
  }
})

test('a release wakes the waiter in another process long before it would ask', async () => {
  const store = newStore()
  const claim = newClaim('a', { ttl: 60_000 })
  await store.acquire(claim, never)
  const grant = newProcess().ask('acquireInTurn', newClaim('a', { queue: true, ttl: 60_000 }))
  await until('the other waits', () => waiters(store, 'a'))
  await store.release(claim, never)
  expect((await grant).held).toBe(true)
}, 15_000)

test('a link to the file and the file itself are one store', async () => {
  const link = `${path}-link`
  const store = newStore()
  const claim = newClaim('a', { ttl: 60_000 })
  await store.acquire(claim, never)
  symlinkSync(path, link)
  const grant = newProcess(link).ask('acquireInTurn', newClaim('a', { queue: true, ttl: 60_000 }))
  await until('the other waits', () => waiters(store, 'a'))
  await store.release(claim, never)
  expect((await grant).held).toBe(true)
}, 15_000)

test('two stores on one file in one process share the names, and one may close before the other', async () => {
  const one = newStore()
  const two = newStore()
  const claim = newClaim('a')
  expect(await one.acquire(claim, never)).toMatchObject({ held: true })
  expect(await two.acquire(newClaim('a'), never)).toMatchObject({ held: false })
  await one[Symbol.asyncDispose]()
  expect(await newProcess().ask('acquire', newClaim('a'))).toMatchObject({ held: false })
  expect(await two.release(claim, never)).toBe('released')
})

test('the lease of a killed process ends with its ttl, and the next token is higher', async () => {
  const other = newProcess()
  const before = await other.ask('acquire', newClaim('a', { ttl: 2_000 }))
  other.kill('SIGKILL')
  const store = newStore()
  const after = await until('the lease ends', async () => {
    const grant = await store.acquire(newClaim('a'), never)
    return grant.held ? grant : undefined
  })
  expect(before.held && after.token > before.token).toBe(true)
})

test('a killed waiter costs the next ones one grace period', async () => {
  const store = newStore()
  const claim = newClaim('a', { ttl: 60_000 })
  await store.acquire(claim, never)
  const first = newProcess()
  first.ask('acquireInTurn', newClaim('a', { queue: true, ttl: 60_000 })).catch(() => {})
  await until('the first waits', () => waiters(store, 'a'))
  const second = newProcess().ask('acquireInTurn', newClaim('a', { queue: true, ttl: 60_000 }))
  await until('the second waits', async () => (await waiters(store, 'a')) === 2)
  first.kill('SIGKILL')
  await store.release(claim, never)
  expect((await second).held).toBe(true)
}, 15_000)

test('while a process is paused in a transaction, others get an error in time, and nothing of theirs is carried out late', async () => {
  const stopped = newProcess()
  const store = newStore()
  const held = newClaim('held', { ttl: 60_000 }) // outlasts the start of the other process
  await store.acquire(held, never)
  const itsGrant = stopped.ask('stopInTransaction', 'its name')
  await until('the file is locked', () => existsSync(`${path}-stopped`))
  await expect(store.acquire(newClaim('late', { ttl: 300 }), never)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
  })
  await expect(store.renew({ ...held, ttl: 300 }, never)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await store.acquire(newClaim('held'), never), 'what needs no write is answered').toMatchObject({ held: false })

  stopped.kill('SIGCONT')
  await itsGrant
  expect(await records(store, 'late')).toEqual([])
  expect(await store.acquire(newClaim('its name'), never)).toMatchObject({ held: false })
  expect(await store.acquire(newClaim('late'), never)).toMatchObject({ held: true })
}, 15_000)

test('a process killed in a transaction leaves nothing behind, and the file is free at once', async () => {
  const stopped = newProcess()
  const store = newStore()
  await store.acquire(newClaim('warm up'), never)
  stopped.ask('stopInTransaction', 'its name').catch(() => {})
  await until('the file is locked', () => existsSync(`${path}-stopped`))
  stopped.kill('SIGKILL')
  await until('the file is free', () => store.acquire(newClaim('its name'), never).then(answer => answer.held))
}, 60_000)

test('a process paused past its ttl finds its lease gone, and its release does not free the next holder', async () => {
  const other = newProcess()
  const claim = newClaim('a', { ttl: 2_000 })
  await other.ask('acquire', claim)
  other.kill('SIGSTOP')
  const store = newStore()
  const next = newClaim('a')
  await until('the lease ends', () => store.acquire(next, never).then(answer => answer.held))
  other.kill('SIGCONT')
  expect(await other.ask('renew', claim)).toBeUndefined()
  expect(await other.ask('release', claim)).toBe('gone')
  expect(await store.renew(next, never)).toMatchObject({ held: true })
})

test.each([
  ['an import', ''],
  ['a watch alone', 'await store.watch(claim, () => {}, never)'],
])('%s keeps no process alive, prints nothing', async (_, code) => {
  const program = `
    import { sqlite } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
    const store = sqlite(${JSON.stringify(path)}), never = new AbortController().signal
    const claim = { name: 'a', id: 'b', owner: '', ttl: 60_000, note: '', queue: true }
    await store.acquire(claim, never)
    ${code}`
  const child = spawn(process.execPath, [
    '--experimental-strip-types',
    '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
    '--input-type=module',
    '-e',
    program,
  ])
  let output = ''
  child.stderr.on('data', data => {
    output += data
  })
  await once(child, 'exit')
  expect(output.replace(/^.*Type Stripping is an experimental.*\n(.*--trace-warnings.*\n)?/m, '')).toBe('')
  expect(child.exitCode).toBe(0)
})
