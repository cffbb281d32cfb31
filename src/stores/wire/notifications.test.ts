import { expect, test } from 'vitest'
import { storeError } from '../../contract/request.ts'
import { systemClock } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import { Notifications } from './notifications.ts'

const never = new AbortController().signal

test('a subscription that is being opened when the address moves is replaced before anybody relies on it', async () => {
  const opened: { isClosed: boolean }[] = []
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const subscribe = async (): Promise<Connection> => {
    const connection = { isClosed: false, close: () => (connection.isClosed = true) }
    opened.push(connection)
    reach()
    await answered
    return connection as unknown as Connection
  }
  const notifications = new Notifications(systemClock(), { subscribe, failure: error => storeError(error) })
  const watched = notifications.watch('a', () => {}, never)
  await reached
  notifications.move()
  answer()
  await watched
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false])
  expect(notifications.subscription).toBe(opened[1])
  notifications.close()
})

test('no signal outlives the opening of a subscription, since clients leave listeners at it', async () => {
  const signals: AbortSignal[] = []
  const ended: (() => void)[] = []
  const subscribe = async (_: unknown, end: () => void, signal: AbortSignal): Promise<Connection> => {
    signals.push(signal)
    ended.push(end)
    return { close: () => {} } as Connection
  }
  const notifications = new Notifications(systemClock(), { subscribe, failure: error => storeError(error) })
  await notifications.watch('a', () => {}, never)
  ended[0]?.()
  await notifications.watch('b', () => {}, never)
  expect(new Set(signals).size).toBe(2)
  notifications.close()
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
})

test('when a subscription ends, its waiters ask at once, before there is another', async () => {
  let end = (): void => {}
  const subscribe = async (_: unknown, ended: () => void): Promise<Connection> => {
    end = ended
    return { close: () => {} } as Connection
  }
  const notifications = new Notifications(systemClock(), { subscribe, failure: error => storeError(error) })
  let woken = 0
  await notifications.watch('a', () => (woken += 1), never)
  end()
  expect([woken, notifications.subscription]).toEqual([1, undefined])
  notifications.close()
})
