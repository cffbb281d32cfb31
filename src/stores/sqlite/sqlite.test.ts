import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { look } from '../../../test/support.ts'
import { openStore } from '../../connect.ts'
import type { Busy, Claim, Grant, LeaseRecord, Query, Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { sqlite } from './index.ts'

let folder: string
let path: string
let store: Store
let now: number
let ids = 0
const never = new AbortController().signal
const START = Date.UTC(2025, 0)
const real = systemClock()
const clock: Clock = { now: () => real.now(), wall: () => now, after: (delay, action) => real.after(delay, action) }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  path = join(folder, 'leases.db')
  now = START
  store = sqlite(path, { clock })
})

afterEach(async () => {
  await store[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function newClaim(name: string, wishes: Partial<Claim> = {}): Claim {
  ids += 1
  return { name, id: `claim ${ids}`, owner: `owner ${ids}`, ttl: 10_000, note: '', queue: false, ...wishes }
}

const ask = (claim: Claim): Promise<Grant | Busy> => store.acquire(claim, never)

async function hold(claim: Claim): Promise<bigint> {
  const answer = await ask(claim)
  if (!answer.held) throw new Error(`${claim.name} is busy`)
  return answer.token
}

async function records(query: Query): Promise<LeaseRecord[]> {
  return look(store, query)
}

/** Locks the file, as another process would by a transaction that does not end. */
function lock(): () => void {
  const database = new DatabaseSync(path)
  database.exec('begin immediate')
  return () => database.close()
}

/** What the write-ahead log has grown to; each page that a transaction changes adds 4,120 bytes. */
const written = (): number => statSync(`${path}-wal`).size

test('tokens rise through release, expiry and break, also while the clock is set back', async () => {
  const first = newClaim('a')
  const tokens = [await hold(first)]
  expect(tokens[0]).toBe(BigInt(START) * 1_000n)
  now -= 3_600_000
  await store.release(first, never)
  tokens.push(await hold(newClaim('a', { ttl: 100 })))
  now += 100
  tokens.push(await hold(newClaim('a')))
  tokens.push((await store.break('a', { by: 'somebody' }, never)) ?? 0n)
  tokens.push(await hold(newClaim('a')))
  expect(tokens).toEqual([...tokens].sort((a, b) => Number(a - b)))
  expect(new Set(tokens).size).toBe(5)
})

test('an expired lease whose row is still there is revived neither by a renewal nor by a note', async () => {
  const claim = newClaim('a')
  await hold(claim)
  now += claim.ttl
  expect(await store.annotate({ ...claim, note: 'late' }, never)).toBe(false)
  expect(await store.renew(claim, never)).toBeUndefined()
  expect(await records({ name: 'a' })).toEqual([])
})

test('a token above 2^53 - 1 is refused, and other requests succeed', async () => {
  const claim = newClaim('a')
  await hold(claim)
  now = Date.UTC(2300, 0)
  const [acquired, released] = await Promise.allSettled([ask(newClaim('b')), store.release(claim, never)])
  expect(acquired).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
  expect(released).toMatchObject({ value: 'gone' })
  now = START
  expect(await ask(newClaim('b'))).toMatchObject({ held: true })
})

test('leases are in the file and survive the store', async () => {
  const claim = newClaim('a', { note: 'nightly' })
  const token = await hold(claim)
  await store[Symbol.asyncDispose]()
  store = sqlite(path, { clock })
  expect(await records({ name: 'a' })).toMatchObject([{ token, note: 'nightly', owner: claim.owner }])
  expect(await ask(claim)).toMatchObject({ held: true, token })
})

test('a failed attempt without queueing writes nothing', async () => {
  await hold(newClaim('a'))
  const before = written()
  for (let tries = 0; tries < 10; tries += 1) expect(await ask(newClaim('a'))).toMatchObject({ held: false, ahead: 0 })
  expect(written()).toBe(before)
})

test('a failed attempt is answered even while another process has the lock', async () => {
  await hold(newClaim('a'))
  const unlock = lock()
  expect(await ask(newClaim('a'))).toMatchObject({ held: false })
  unlock()
})

test('simultaneous requests share one transaction', async () => {
  await hold(newClaim('first'))
  const before = written()
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => ask(newClaim(`name ${index}`))))
  expect(answers.every(answer => answer.held)).toBe(true)
  expect(written() - before).toBeLessThan(30 * 4_120) // each alone would change two pages at least
})

test('requests for one name keep their order within a transaction', async () => {
  const [first, second] = [newClaim('a'), newClaim('a')]
  const all = [ask(first), ask(second), store.release(first, never), ask(second), ask(first)]
  expect(await Promise.all(all)).toMatchObject([
    { held: true },
    { held: false },
    'released',
    { held: true },
    { held: false },
  ])
})

test('a request past its limit is not carried out, and the error says so', async () => {
  await hold(newClaim('warm up'))
  const unlock = lock()
  const start = performance.now()
  const late = newClaim('a', { ttl: 300 })
  await expect(ask(late)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(performance.now() - start).toBeGreaterThan(85)
  unlock()
  expect(await records({ name: 'a' })).toEqual([])
})

test('a process that was paused before it got the lock does not carry out stale requests', async () => {
  let looks = 0
  const stopped: Clock = {
    ...clock,
    now() {
      looks += 1
      return looks < 3 ? 0 : 10_000 // when it is made, before the lock, after the lock
    },
  }
  const other = sqlite(path, { clock: stopped })
  await expect(other.acquire(newClaim('a'), never)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(looks).toBe(3)
  await other[Symbol.asyncDispose]()
  expect(await records({ name: 'a' })).toEqual([])
})

test('requests wait for the lock, each until its own limit, and later requests join them', async () => {
  const claim = newClaim('a')
  await hold(claim)
  const unlock = lock()
  const released = store.release(claim, never)
  await expect(ask(newClaim('b', { ttl: 150 }))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  const joined = ask(newClaim('c'))
  unlock()
  expect(await released).toBe('released')
  expect(await joined).toMatchObject({ held: true })
  expect(await records({ name: 'b' })).toEqual([])
})

test('an abort settles a request that waits for the lock, with the reason, and leaves nothing', async () => {
  await hold(newClaim('warm up'))
  const unlock = lock()
  const controller = new AbortController()
  const asked = store.acquire(newClaim('a'), controller.signal)
  const reason = new Error('no more')
  setTimeout(() => controller.abort(reason), 10)
  await expect(asked).rejects.toBe(reason)
  unlock()
  expect(await records({ name: 'a' })).toEqual([])
})

test('a claim that was withdrawn before it arrived is refused when it does', async () => {
  const claim = newClaim('a')
  expect(await store.release(claim, never)).toBe('gone')
  expect(await ask(claim)).toMatchObject({ held: false })
  expect(await ask(newClaim('a'))).toMatchObject({ held: true })
})

test('rows of dead processes are deleted as new names and withdrawals come', async () => {
  for (let index = 0; index < 100; index += 1) {
    await ask(newClaim(`dead ${index}`, { ttl: 9_000 }))
    await ask(newClaim(`dead ${index}`, { ttl: 9_000, queue: true }))
    await store.release(newClaim('never arrives'), never)
  }
  now += 100_000
  for (let index = 0; index < 100; index += 1) {
    await ask(newClaim(`new ${index}`))
    await store.release(newClaim('never arrives'), never)
  }
  const database = new DatabaseSync(path)
  const count = (table: string): unknown => database.prepare(`select count(*) as n from ${table}`).get()?.n
  expect([count('holder'), count('waiter'), count('queue'), count('tombstone')]).toEqual([100, 0, 0, 100])
  database.close()
})

test('names are listed by prefix, page by page, and no character in them is special', async () => {
  const names = [...Array.from({ length: 450 }, (_, index) => `job ${index}`), 'j_b', 'j%b', 'Job', 'jób 😀', 'a']
  await Promise.all(names.map(name => ask(newClaim(name))))
  const listed = async (prefix: string): Promise<string[]> => (await records({ prefix })).map(record => record.name)
  expect(await listed('job ')).toHaveLength(450)
  expect(new Set(await listed(''))).toEqual(new Set(names))
  expect(await listed('j_')).toEqual(['j_b'])
  expect(await listed('jób')).toEqual(['jób 😀'])
  expect(await listed('x')).toEqual([])
  expect(await records({ name: 'job' })).toEqual([])
})

test('a closed store rejects all requests, including pending ones', async () => {
  const pending = ask(newClaim('a'))
  await store[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
  await expect(pending).rejects.toMatchObject({ code: 'CLOSED' })
  await expect(ask(newClaim('a'))).rejects.toMatchObject({ code: 'CLOSED', retryable: false })
})

test('the first use creates the file', async () => {
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined()
  await ask(newClaim('a'))
  expect(statSync(path).isFile()).toBe(true)
})

test('a URL has an unencoded path and no host', async () => {
  for (const url of [`sqlite:${path}`, `sqlite://${path}`]) {
    const other = await openStore(url)
    await other.acquire(newClaim(url), never)
    await other[Symbol.asyncDispose]()
    expect(await records({ name: url })).toHaveLength(1)
  }
  await expect(openStore('sqlite://leases.db')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('a URL with options does not name another file, but a folder may have any name', async () => {
  for (const end of ['?minTtl=50', '#a'])
    await expect(openStore(`sqlite:${path}${end}`)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('sqlite: has no options in the URL'),
    })
  await using store = await openStore(`sqlite:${folder}/c#?/leases.db`)
  expect(store.guarantees.scope).toBe('machine')
})
