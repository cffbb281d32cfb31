import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../contract/time.ts'
import type { Leases } from './leases.ts'
import { Wakes } from './wakes.ts'

const key = { name: 'a', id: 'b' }

test('where the system does not tell of changed files, a release is seen all the same', async () => {
  const leases = { freed: () => [{ name: 'a', expires: 1 }], due: () => ['b'] } as unknown as Leases
  const wakes = new Wakes('/nowhere/leases.db', systemClock(), read => read(leases, 1))
  let woken = 0
  await new Promise<void>(resolve => {
    const wake = (): void => {
      woken += 1
      resolve()
    }
    wakes.add(key, wake, new AbortController().signal)
    void sleep(5_000) // the wait for a wake keeps no process alive by itself
  })
  wakes.check()
  expect(woken, 'once for each release').toBe(1)
  wakes.close()
})

test('looks only while somebody waits', () => {
  let timers = 0
  const clock = systemClock()
  const after = (): (() => void) => {
    timers += 1
    return () => {
      timers -= 1
    }
  }
  const wakes = new Wakes('/nowhere/leases.db', { ...clock, after }, () => undefined)
  const one = new AbortController()
  const two = new AbortController()
  wakes.add(key, () => {}, one.signal)
  wakes.add({ name: 'c', id: 'd' }, () => {}, two.signal)
  expect(timers).toBe(1)
  one.abort()
  expect(timers).toBe(1)
  two.abort()
  expect(timers).toBe(0)
  wakes.add(key, () => {}, new AbortController().signal)
  wakes.close()
  wakes.add(key, () => {}, new AbortController().signal)
  expect(timers).toBe(0)
})
