import { fstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, expect, test, vi } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { failureOf } from '../../../../test/support.ts'
import { fileFence, fileMarks } from '../../files/index.ts'
import { holder } from '../support.ts'

// No disk fails on request, so these calls fail for folders here.
const broken = vi.hoisted(() => ({ call: '' }))

function failing(call: string): Error {
  return Object.assign(new Error(`EIO: i/o error, ${call}`), { code: 'EIO', syscall: call })
}

vi.mock('node:fs', async original => {
  const real = await original<typeof import('node:fs')>()
  return {
    ...real,
    openSync(...args: Parameters<typeof real.openSync>) {
      const isFolder = real.statSync(args[0], { throwIfNoEntry: false })?.isDirectory()
      if (broken.call === 'open' && isFolder) throw failing('open')
      return real.openSync(...args)
    },
    fsyncSync(descriptor: number) {
      if (broken.call === 'fsync' && fstatSync(descriptor).isDirectory()) throw failing('fsync')
      real.fsyncSync(descriptor)
    },
  }
})

let folder: string
beforeEach(async () => {
  broken.call = ''
  folder = newFolder('durable')
  await fileFence().write(holder('file', 7), join(folder, 'file'), 'before')
})

test('a folder that cannot be opened leaves the file unchanged', async () => {
  broken.call = 'open'
  const error = await failureOf(fileFence().write(holder('file', 7), join(folder, 'file'), 'after'))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/could not be replaced/) })
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('before')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('a folder that cannot be synced leaves the outcome unknown', async () => {
  broken.call = 'fsync'
  const error = await failureOf(fileFence().write(holder('file', 7), join(folder, 'file'), 'after'))
  expect(error).toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringMatching(/was replaced.*write it again/),
  })
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('after')
  expect(readdirSync(folder)).toHaveLength(2)
})

test('a folder that becomes a file while its marks are locked fails a write, but not a touch, which needs no folder', async () => {
  const marksPath = join(newFolder('marks'), 'marks.db')
  const fence = fileFence({ marksPath })
  const path = join(folder, 'file')
  await fence.touch(holder('file', 7), path)
  const other = new DatabaseSync(marksPath)
  other.exec('begin immediate')
  const [touched, written] = [
    fence.touch(holder('file', 8), path),
    failureOf(fence.write(holder('file', 8), path, 'x')),
  ]
  rmSync(folder, { recursive: true })
  writeFileSync(folder, '')
  other.close()
  await touched
  expect(await written).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/could not be replaced/),
  })
  expect(await fileMarks(marksPath).list()).toMatchObject([{ token: 8n }])
})
