import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { failureOf } from '../../../../test/support.ts'
import { fileFence } from '../../files/index.ts'
import { temporaryPrefix } from '../../files/place.ts'

const foreign = fileURLToPath(new URL('foreign.ts', import.meta.url))
let folder: string
let path: string
beforeEach(() => {
  folder = newFolder('files')
  path = join(folder, 'ledger')
})

const lease = (token: number): { name: string; token: bigint } => ({ name: 'ledger', token: BigInt(token) })

test('a file that was set-user-id is not set-user-id of its writer', async () => {
  writeFileSync(path, 'before')
  chmodSync(path, 0o6755)
  await fileFence().write(lease(1), path, 'after')
  expect((statSync(path).mode & 0o7777).toString(8)).toBe('755')
})

test('a file of another user is replaced by a private one', () => {
  const asRoot = process.getuid?.() === 0 ? [] : ['unshare', '-r', '--map-auto']
  const [command, ...args] = [...asRoot, process.execPath, '--experimental-strip-types', foreign, path]
  writeFileSync(path, 'before')
  expect(execFileSync(command, args, { encoding: 'utf8' })).toBe('0 600')
})

test.each([
  ['of a folder', '.holdfast-fence.db', undefined],
  ['that the option names', 'link.db', 'link.db'],
])('marks %s that are a dangling link create no file elsewhere', async (_, name, marks) => {
  const elsewhere = join(newFolder('elsewhere'), 'created')
  symlinkSync(elsewhere, join(folder, name))
  const error = await failureOf(fileFence(marks ? { marksPath: join(folder, marks) } : {}).write(lease(1), path, 'x'))
  expect([error.code, existsSync(elsewhere)]).toEqual(['INVALID_ARGUMENT', false])
})

test('a folder with the name of a temporary file does not fail the first write of a token', async () => {
  await fileFence().write(lease(1), path, 'one')
  const prefix = temporaryPrefix({ path } as Parameters<typeof temporaryPrefix>[0])
  mkdirSync(join(folder, `${prefix}0-1-${'0'.repeat(16)}`))
  await fileFence().write(lease(2), path, 'two')
  expect(readFileSync(path, 'utf8')).toBe('two')
})
