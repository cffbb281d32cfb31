import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, win32 } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { newFolder } from '../lab/servers/folder.ts'
import { ENTRIES } from '../script/entries.ts'
import type { ENGINES } from '../src/engines.ts'
import { ROOT, scriptNode } from './script-node.ts'

/** All files that users of the library load: what the entry points and the heartbeat thread import, also later. */
const LIBRARY = reached([...Object.values(ENTRIES), 'src/heartbeat-worker.ts'])

/** What only POSIX has, or another runtime may lack. */
const POSIX =
  /'node:(?:child_process|cluster|tty|path\/posix)'|process\.(?:kill|umask|on\('SIG|once\('SIG|(?:get|set)e?[ug]ids?\()|\bdetached:/

describe('the library', () => {
  test('has no process groups, signals, user ids or paths of POSIX, so that it runs on Windows', () => {
    expect(LIBRARY).toContain('src/stores/etcd/open.ts') // loaded by connect
    expect(LIBRARY.filter(path => POSIX.test(read(path)))).toEqual([])
  })

  test('such code is found', () => {
    const found = reached(['src/cli/run/run.ts']).filter(path => POSIX.test(read(path)))
    expect(found).toEqual(expect.arrayContaining(['src/cli/run/child.ts', 'src/cli/run/process-group.ts']))
    for (const call of ['process.geteuid()', "process.once('SIGTERM'", "from 'node:path/posix'"])
      expect(call).toMatch(POSIX)
    expect('process.geteuid?.()').not.toMatch(POSIX)
  })

  // Where they are absent, it does without.
  test('reads files of Linux only where a failure is caught', () => {
    const names = LIBRARY.filter(path => /'\/(?:dev|proc|tmp|etc|sys)\//.test(read(path)))
    expect(names).toEqual(['src/contract/random-id.ts', 'src/stores/sqlite/mounts.ts'])
  })
})

describe('paths of Windows', async () => {
  vi.doMock('node:path', () => ({ ...win32, default: win32 }))
  vi.resetModules()
  const { openSqlite } = await import('../src/stores/sqlite/open.ts')
  const { checkPath } = await import('../src/stores/sqlite/path.ts')
  const { ENGINES: engines } = (await import('../src/engines.ts')) as { ENGINES: typeof ENGINES }
  const sqlite = engines.find(({ name }) => name === 'sqlite')
  afterAll(() => void vi.doUnmock('node:path'))

  test.each([
    'sqlite:C:\\app\\leases.db',
    'sqlite:C:/app/leases.db',
    'sqlite:C:\\c#\\leases.db',
    'sqlite:\\\\?\\C:\\l.db',
  ])('%s is the URL of a file', url => expect(openSqlite(url).kind).toBe('sqlite'))

  test('a thread opens the same file', () => {
    expect(sqlite?.elsewhere?.('sqlite:C:/app/leases.db')).toBe('sqlite:C:\\app\\leases.db')
    expect(sqlite?.elsewhere?.('sqlite:leases.db')).toBe(`sqlite:${win32.resolve('leases.db')}`)
  })

  test('a missing folder is named', () => {
    expect(() => checkPath('Q:\\app\\leases.db')).toThrow('the folder "Q:\\\\app" does not exist')
  })
})

/** Loaded first, it makes a process see Windows: no user ids, and folders that cannot be synced. */
const windows = `data:text/javascript,${encodeURIComponent(`
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  Object.defineProperty(process, 'platform', { value: 'win32' })
  for (const name of ['getuid', 'geteuid', 'getgid', 'getegid']) delete process[name]
  fs.fsyncSync = () => { throw Object.assign(new Error('EPERM'), { code: 'EPERM', syscall: 'fsync' }) }
  syncBuiltinESMExports()`)}`

describe('on Windows', () => {
  test.each([['run', 'a', '--', 'true'], ['elect', 'a', '--', 'true'], ['demo']])(
    'holdfast %s refuses in one sentence',
    async (...args) => {
      const folder = newFolder('windows')
      const env = { HOLDFAST_STORE: `sqlite:${join(folder, 'leases.db')}` }
      const outcome = await scriptNode(['--import', windows, join(ROOT, 'src/cli/main.ts'), ...args], { folder, env })
      expect(outcome).toMatchObject({ code: 69, stdout: '' })
      expect(outcome.stderr).toMatch(/^holdfast: holdfast (?:run|elect|demo) [^.\n]*Windows[^.\n]*\n$/)
    },
  )

  test('a fence of files replaces a file, though no folder can be synced', async () => {
    const folder = newFolder('windows')
    const program = `
      import { fileFence } from ${JSON.stringify(join(ROOT, 'src/fencing/files/index.ts'))}
      await fileFence().write({ name: 'a', token: 7n }, 'report.txt', 'new')`
    writeFileSync(join(folder, 'write.mts'), program)
    expect(await scriptNode(['--import', windows, 'write.mts'], { folder })).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(join(folder, 'report.txt'), 'utf8')).toBe('new')
  })
})

/** These files, and all that they load, without what only types need. */
function reached(paths: readonly string[], seen = new Set<string>()): string[] {
  const loads = /^(?:import|export)(?! type)[^'`]*?'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm
  for (const path of paths) {
    if (seen.has(path)) continue
    seen.add(path)
    const next = Array.from(read(path).matchAll(loads), ([, named, later]) =>
      relative(ROOT, join(ROOT, dirname(path), named ?? later ?? '')),
    )
    reached(
      next.filter(file => existsSync(join(ROOT, file))),
      seen,
    )
  }
  return [...seen].sort()
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
