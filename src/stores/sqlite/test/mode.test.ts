import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { claimOf, hold } from '../../../../test/support.ts'
import { holdfast } from '../../../cli/test/holdfast.ts'
import { fencedTouch, fencedWrite } from '../../../fencing/files/index.ts'
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
  await fencedTouch(join(folder, 'file'), { name: 'a', token: 1n })
  expect(modes(folder)).toEqual({ '.holdfast-fence.db': '600' })
})

test('M6: the folder of the default store is made private', async () => {
  const folder = newFolder('mode')
  const state = join(folder, 'holdfast')
  mkdirSync(state)
  chmodSync(state, 0o755)
  const { code } = await holdfast(['run', 'a', '--', 'true'], {
    env: { HOLDFAST_STORE: undefined, XDG_STATE_HOME: folder },
  })
  expect(code).toBe(0)
  expect(modeOf(state)).toBe('700')
  expect(modeOf(join(state, 'leases.db'))).toBe('600')
})

test('L18: a file that only resembles a temporary file of a fence is kept', async () => {
  const folder = newFolder('stray')
  const path = join(folder, 'out.csv')
  const prefix = temporaryPrefix({ path } as Parameters<typeof temporaryPrefix>[0])
  const strays = [`${prefix}0-zz`, `${prefix}0-1`, `${prefix}-1-x`]
  for (const name of strays) writeFileSync(join(folder, name), '')
  await fencedWrite(path, 'by 2', { name: 'x', token: 2n })
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(strays))
})
