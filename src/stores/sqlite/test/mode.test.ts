import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { claimOf, hold } from '../../../../test/support.ts'
import { HOLDFAST, holdfast, launch } from '../../../cli/test/holdfast.ts'
import { fileFence } from '../../../fencing/files/index.ts'
import { temporaryPrefix } from '../../../fencing/files/place.ts'
import { sqlite } from '../index.ts'

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** The modes of all files in a folder, by name. */
function modes(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map(name => [name, modeOf(join(folder, name))]))
}

test('M6: only their user can read the file of a store and the files that SQLite adds', async () => {
  const folder = newFolder('mode')
  await using store = sqlite(join(folder, 'leases.db'))
  await hold(store, claimOf('a'))
  expect(modes(folder)).toEqual({ 'leases.db': '600', 'leases.db-shm': '600', 'leases.db-wal': '600' })
})

test('M6: so is a file that a dangling link leads to', async () => {
  const folder = newFolder('mode')
  symlinkSync('target.db', join(folder, 'leases.db'))
  await using store = sqlite(join(folder, 'leases.db'))
  await hold(store, claimOf('a'))
  expect(modeOf(join(folder, 'target.db'))).toBe('600')
})

test('M6: a file that already exists, for a group, keeps its mode', async () => {
  const folder = newFolder('mode')
  writeFileSync(join(folder, 'leases.db'), '')
  chmodSync(join(folder, 'leases.db'), 0o660)
  await using store = sqlite(join(folder, 'leases.db'))
  await hold(store, claimOf('a'))
  expect(modes(folder)).toEqual({ 'leases.db': '660', 'leases.db-shm': '660', 'leases.db-wal': '660' })
})

test('M6: only their user can read the marks of files', async () => {
  const folder = newFolder('mode')
  await fileFence().touch({ name: 'a', token: 1n }, join(folder, 'file'))
  expect(modes(folder)).toEqual({ '.holdfast-fence.db': '600' })
})

const runBelow = (folder: string): ReturnType<typeof holdfast> =>
  holdfast(['run', 'a', '--', 'true'], { env: { HOLDFAST_STORE: undefined, XDG_STATE_HOME: folder } })

test('a folder of the default store that exists keeps its mode', async () => {
  const folder = newFolder('mode')
  const state = join(folder, 'holdfast')
  mkdirSync(state)
  chmodSync(state, 0o755)
  expect((await runBelow(folder)).code).toBe(0)
  expect(modeOf(state)).toBe('755')
  expect(modeOf(join(state, 'leases.db'))).toBe('600')
})

test('a folder of the default store that others can write to is refused', async () => {
  const folder = newFolder('mode')
  mkdirSync(join(folder, 'holdfast'))
  chmodSync(join(folder, 'holdfast'), 0o777)
  expect(await runBelow(folder)).toMatchObject({ code: 69, err: expect.stringContaining('run chmod go-w on it') })
  expect(modes(folder)).toEqual({ holdfast: '777' })
})

test('a link at the folder of the default store changes nothing at its target', async () => {
  const [folder, target] = [newFolder('mode'), newFolder('target')]
  chmodSync(target, 0o755)
  symlinkSync(target, join(folder, 'holdfast'))
  expect(await runBelow(folder)).toMatchObject({ code: 69, err: expect.stringContaining('is a link') })
  expect([modeOf(target), readdirSync(target)]).toEqual(['755', []])
})

test('the HOME of another user gets no default store', async () => {
  const folder = newFolder('home')
  const script = 'chown 1:1 "$XDG_STATE_HOME"; exec "$@" run a -- true'
  const asRoot = process.getuid?.() === 0 ? [] : ['unshare', '-r', '--map-auto']
  const env = { HOLDFAST_STORE: undefined, XDG_STATE_HOME: folder }
  const { code, err } = await launch([...asRoot, 'sh', '-c', script, 'sh', ...HOLDFAST], { env }).ended
  expect({ code, err }).toEqual({
    code: 69,
    err: expect.stringContaining(`is below ${folder}, which another user owns`),
  })
  expect(readdirSync(folder)).toEqual([])
})

test('L18: a file that only resembles a temporary file of a fence is kept', async () => {
  const folder = newFolder('stray')
  const path = join(folder, 'out.csv')
  const prefix = temporaryPrefix({ path } as Parameters<typeof temporaryPrefix>[0])
  const strays = [`${prefix}0-zz`, `${prefix}0-1`, `${prefix}-1-x`]
  for (const name of strays) writeFileSync(join(folder, name), '')
  await fileFence().write({ name: 'x', token: 2n }, path, 'by 2')
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(strays))
})
