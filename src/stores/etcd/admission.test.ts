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

test('calls of one claim that wait at once are all admitted, and their claim keeps its turn', async () => {
  const admissions = new Admissions(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const order: string[] = []
  const call = (id: string, patience = 1_000): Promise<unknown> =>
    admissions.run('name', id, patience, signal, async () => order.push(id))
  const first = admissions.run('name', 'first', 1_000, signal, () => promise)
  const calls = [call('second', 0), call('second'), call('third'), call('second')]
  expect(await calls[0]).toBeUndefined()
  resolve()
  await first
  expect(await Promise.all(calls.slice(1))).not.toContain(undefined)
  expect(order).toEqual(['second', 'second', 'third'])
  expect(admissions.size).toBe(0)
})

test('a claim that was withdrawn has no turn when its call ends', async () => {
  const admissions = new Admissions(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = admissions.run('name', 'first', 1_000, signal, () => promise)
  const second = admissions.run('name', 'second', 10, signal, () => promise)
  admissions.forget('name', 'second')
  expect(await second).toBeUndefined()
  resolve()
  await first
  expect(admissions.size).toBe(0)
})
