import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../contract/time.ts'
import type { Leases } from './leases.ts'
import { Notifications } from './notifications.ts'

const key = { name: 'a', id: 'b' }

test('a release is noticed even where the system does not report changed files', async () => {
  const leases = { hints: () => [{ ...key, cause: '1', delay: 0 }] } as unknown as Leases
  const notifications = new Notifications('/nowhere/leases.db', systemClock(), read => read(leases))
  let woken = 0
  await new Promise<void>(resolve => {
    const wake = (): void => {
      woken += 1
      resolve()
    }
    notifications.add(key, wake, new AbortController().signal)
    void sleep(5_000) // the wait for a wake keeps no process alive by itself
  })
  notifications.check()
  expect(woken, 'once for each release').toBe(1)
  notifications.close()
})

test('checks the file only while there are waiters', () => {
  let timers = 0
  const clock = systemClock()
  const after = (): (() => void) => {
    timers += 1
    return () => {
      timers -= 1
    }
  }
  const notifications = new Notifications('/nowhere/leases.db', { ...clock, after }, () => undefined)
  const one = new AbortController()
  const two = new AbortController()
  notifications.add(key, () => {}, one.signal)
  notifications.add({ name: 'c', id: 'd' }, () => {}, two.signal)
  expect(timers).toBe(1)
  one.abort()
  expect(timers).toBe(1)
  two.abort()
  expect(timers).toBe(0)
  notifications.add(key, () => {}, new AbortController().signal)
  notifications.close()
  notifications.add(key, () => {}, new AbortController().signal)
  expect(timers).toBe(0)
})
