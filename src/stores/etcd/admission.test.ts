import { expect, test } from 'vitest'
import { signal } from '../../../test/support.ts'
import { Admissions } from './admission.ts'

test('a name that was in use leaves nothing behind, also if a claim that waited for it was withdrawn', async () => {
  const admissions = new Admissions(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = admissions.run('name', 'first', 1_000, signal, () => promise)
  expect(await admissions.run('name', 'second', 0, signal, () => promise)).toBeUndefined()
  resolve()
  await first
  expect(admissions.size).toBe(1) // the second has its turn
  admissions.forget('name', 'second')
  expect(admissions.size).toBe(0)
})

test('a name stays in use while a claim is admitted, although another one was withdrawn', async () => {
  const admissions = new Admissions(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = admissions.run('name', 'first', 1_000, signal, () => promise)
  admissions.forget('name', 'second')
  expect(admissions.size).toBe(1)
  resolve()
  await first
  expect(admissions.size).toBe(0)
})
