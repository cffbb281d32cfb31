import { fstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { failureOf } from '../../../../test/support.ts'
import { fileFence } from '../../files/index.ts'
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
