import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import type { LeaseError } from '../../../contract/errors.ts'
import type { Store } from '../../../contract/store.ts'
import { type Clock, systemClock } from '../../../contract/time.ts'
import { failure } from '../failure.ts'
import { sqlite } from '../index.ts'
import { newClaim } from './claim.ts'

let folder: string
let path: string
const never = new AbortController().signal
const node = [process.execPath, '--experimental-strip-types', '--disable-warning=ExperimentalWarning']
const script = fileURLToPath(new URL('attempt.ts', import.meta.url))
// For root no file is unreadable, unless it gives up its capabilities.
const asUser = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--'] : []

beforeEach(() => {
  folder = newFolder('sqlite')
  path = join(folder, 'leases.db')
})

interface Outcome {
  held: number
  code?: string
  message?: string
  retryable?: boolean
}

function run(command: string[]): Outcome[] {
  const [binary = '', ...args] = command
  return JSON.parse(execFileSync(binary, args, { encoding: 'utf8' })) as Outcome[]
}

/** Runs in a mount namespace, in which `mounts` are made first. */
function runWithMounts(mounts: string, ...args: string[]): Outcome[] {
  return run(['unshare', '-Urm', 'sh', '-c', `${mounts}; exec "$@"`, 'sh', ...node, script, ...args])
}

function newStore(file = path): Store {
  const store = sqlite(file)
  onTestFinished(() => store[Symbol.asyncDispose]())
  return store
}

async function failureOf(store: Store): Promise<LeaseError> {
  const answer = await store.acquire(newClaim('a'), never).catch((error: LeaseError) => error)
  if ('held' in answer) throw new Error('it did not fail')
  return answer
}

async function useFile(): Promise<void> {
  const store = sqlite(path)
  await store.acquire(newClaim('a'), never)
  await store[Symbol.asyncDispose]()
}

function edit(sql: string): void {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

test.each(['', ':memory:', 'sqlite:leases.db', 'a\0b', undefined, 5])('the path %j is refused at once', given => {
  expect(() => sqlite(given as string)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('a folder is refused with the name of a file to use', async () => {
  const error = await failureOf(newStore(folder))
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
  expect(error.message).toContain(`${folder}/leases.db`)
})

test('a missing folder is reported, and the store works once it exists', async () => {
  const store = newStore(join(folder, 'missing', 'leases.db'))
  const error = await failureOf(store)
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(error.message).toContain(`${folder}/missing" does not exist`)
  mkdirSync(join(folder, 'missing'))
  expect(await store.acquire(newClaim('a'), never)).toMatchObject({ held: true })
})

test('a folder that is a file, and a device, are refused', async () => {
  writeFileSync(path, '')
  expect(await failureOf(newStore(join(path, 'leases.db')))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(await failureOf(newStore('/dev/null'))).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('a file that is no database is refused and left as it is', async () => {
  const text = 'name,amount\n'.repeat(1_000)
  writeFileSync(path, text)
  const error = await failureOf(newStore())
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
  expect(error.message).toContain('is another file')
  expect(error.message).toMatch(/: give a path of its own$/)
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('a damaged database is refused, and the store works once it is moved away', async () => {
  await useFile()
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(7, 100))
  const store = newStore()
  const error = await failureOf(store)
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
  expect(error.message).toContain('damaged')
  rmSync(path)
  expect(await store.acquire(newClaim('a'), never)).toMatchObject({ held: true })
})

test('the database of another application is refused and left as it is', async () => {
  edit('create table users (name text); insert into users values (1)')
  const before = readFileSync(path)
  const error = await failureOf(newStore())
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
  expect(error.message).toContain('another application')
  expect(readFileSync(path).equals(before)).toBe(true)
})

test.each([
  [1, 'stop all processes that use it, and move it away'],
  [3, 'use a newer version'],
])('a file of format %i is refused with what to do', async (format, cure) => {
  await useFile()
  edit(`pragma user_version = ${format}`)
  const error = await failureOf(newStore())
  expect(error).toMatchObject({ code: 'FORMAT_MISMATCH', retryable: false })
  expect(error.message).toContain(`has format ${format}, and this version of Holdfast supports format 2: ${cure}`)
})

test('an empty file is accepted', async () => {
  writeFileSync(path, '')
  expect(await newStore().acquire(newClaim('a'), never)).toMatchObject({ held: true })
})

test.each([
  ['unreadable', 0o200],
  ['not writable', 0o400],
])('a file that is %s for this user is refused with what to do', async (_, mode) => {
  await useFile()
  chmodSync(path, mode)
  const [outcome] = run([...asUser, ...node, script, path])
  expect(outcome).toMatchObject({ held: 0, code: 'ACCESS_DENIED', retryable: false })
  expect(outcome?.message).toContain(`this user may not read and write "${path}"`)
})

test('a folder in which this user may not write, or search, is refused with what to do', async () => {
  await useFile()
  onTestFinished(() => chmodSync(folder, 0o700))
  for (const mode of [0o500, 0o000]) {
    chmodSync(folder, mode)
    const [outcome] = run([...asUser, ...node, script, path])
    expect(outcome).toMatchObject({ held: 0, code: 'ACCESS_DENIED', retryable: false })
  }
})

test('a read-only file system is refused', async () => {
  await useFile()
  const [outcome] = runWithMounts(`mount --bind "${folder}" "${folder}"; mount -o remount,ro,bind "${folder}"`, path)
  expect(outcome).toMatchObject({ held: 0, code: 'STORE_UNAVAILABLE', retryable: false })
  expect(outcome?.message).toContain('read-only file system')
})

test('a second name of a file is refused, because SQLite keeps its log next to each', async () => {
  await useFile()
  linkSync(path, join(folder, 'other.db'))
  for (const file of [path, join(folder, 'other.db')])
    expect(await failureOf(newStore(file))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/has 2 names \(hard links\)/),
    })
  rmSync(join(folder, 'other.db'))
  symlinkSync(path, join(folder, 'link.db'))
  expect(await newStore(join(folder, 'link.db')).acquire(newClaim('b'), never)).toMatchObject({ held: true })
})

test('a file that is mounted alone, as containers do, is refused', async () => {
  await useFile()
  const [outcome] = runWithMounts(`mount --bind "${path}" "${path}"`, path)
  expect(outcome).toMatchObject({ held: 0, code: 'INVALID_ARGUMENT' })
  expect(outcome?.message).toContain('mount its folder instead')
})

test('a file on a shared folder, as virtual machines and FUSE have, is refused unless the caller allows it', () => {
  const mounts = join(folder, 'mountinfo')
  const { dev } = statSync(folder)
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)]
  writeFileSync(mounts, `30 24 ${major}:${minor} / ${folder} rw,nosuid - fuse.grpcfuse grpcfuse rw\n`)
  const looks = `mount --bind "${mounts}" /proc/$$/mountinfo`
  const [outcome] = runWithMounts(looks, path)
  expect(outcome).toMatchObject({ held: 0, code: 'INVALID_ARGUMENT' })
  expect(outcome?.message).toMatch(/shared folder \(fuse\.grpcfuse\).*allowSharedFolder: true/)
  expect(runWithMounts(`${looks}; export ALLOW_SHARED_FOLDER=1`, path)).toEqual([{ held: 1 }])
})

test('a file that cannot be opened is only refused for good if this user may not use it', () => {
  let error: unknown
  try {
    new DatabaseSync(join(folder, 'missing/leases.db'))
  } catch (caught) {
    error = caught
  }
  writeFileSync(path, '')
  expect(failure(error, path)).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    message: expect.stringContaining('check the limit of open files'),
  })
})

test('a full disk fails writes without losing data, and the store works again when there is space', () => {
  const mounts = `mount -t tmpfs -o size=256k none "${folder}"`
  const [first, full, again, left] = runWithMounts(mounts, path, join(folder, 'filler'))
  expect(first).toEqual({ held: 1 })
  expect(full).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(full?.message).toContain('is full')
  expect(again).toEqual({ held: 2 })
  expect(left).toEqual({ records: 1 + (full?.held ?? 0) + 2 })
})

test('a limit on the size of files is reported as an error, without a crash', () => {
  const command = ['sh', '-c', 'ulimit -f 100; exec "$@"', 'sh', ...node, script, path, join(folder, 'filler')]
  const [first, limited] = run(command)
  expect(first).toEqual({ held: 1 })
  expect(limited).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
  expect(limited?.message).toContain('cannot be read or written (disk I/O error')
})

test('a file that is deleted while in use is created again: its leases are lost and its tokens outranked', async () => {
  const store = newStore()
  const other = newStore()
  const claim = newClaim('a')
  const before = await store.acquire(claim, never)
  for (const end of ['', '-wal', '-shm']) rmSync(path + end)
  const after = await other.acquire(newClaim('a'), never)
  expect(await store.renew(claim, never)).toBeUndefined()
  expect(await store.acquire(claim, never)).toMatchObject({ held: false })
  expect(before.held && after.held && after.token > before.token).toBe(true)
})

test('a token falls only if the file is lost and the clock is then behind the last grant', async () => {
  let now = Date.UTC(2025, 0)
  const real = systemClock()
  const clock: Clock = { now: () => real.now(), wall: () => now, after: (delay, action) => real.after(delay, action) }
  const take = async (): Promise<bigint> => {
    const store = sqlite(path, { clock })
    const claim = newClaim('a')
    const answer = await store.acquire(claim, never)
    await store.release(claim, never)
    await store[Symbol.asyncDispose]()
    return answer.held ? answer.token : 0n
  }
  const lose = (): void => rmSync(path)
  const first = await take()
  lose()
  now += 1
  const second = await take()
  expect(second).toBeGreaterThan(first)
  now -= 3_600_000
  const third = await take()
  expect(third).toBeGreaterThan(second)
  lose()
  expect(await take()).toBeLessThan(third)
})
