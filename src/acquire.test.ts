import { expect, test } from 'vitest'
import { follow, lost, stage } from '../test/scripted-store.ts'
import { subscribe } from './events.ts'

/** A wait whose signal is aborted by a listener at its `busy`th busy answer, and so between two requests. */
async function abortedBetweenRequests(busy: number) {
  const staged = stage()
  const { locks, other, clock, store } = staged
  await other.acquire('a')
  if (busy === 1) store.rule('watch', lost)
  const controller = new AbortController()
  let answers = 0
  const stop = subscribe('lease_busy', () => {
    answers += 1
    if (answers === busy) controller.abort('enough')
  })
  const wait = follow(locks.acquire('a', { signal: controller.signal }))
  await clock.advance(0)
  stop()
  return { ...staged, wait }
}

test('an abort between a busy answer and the arming of the watch settles the wait at once', async () => {
  const { wait, store } = await abortedBetweenRequests(1)
  expect(wait).toMatchObject({ settled: true, error: 'enough' })
  expect(store.calls).toEqual(['acquire', 'release'])
})

test('an abort between a busy answer and the sleep until the next request settles the wait at once', async () => {
  const { wait, store } = await abortedBetweenRequests(2)
  expect(wait).toMatchObject({ settled: true, error: 'enough' })
  expect(store.calls).toEqual(['acquire', 'watch', 'acquire', 'release'])
})
