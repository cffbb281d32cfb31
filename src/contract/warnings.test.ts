import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test, vi } from 'vitest'
import { subscribe } from './events.ts'
import { warn } from './warnings.ts'

test('a warning is given once for each cause, by process.emitWarning and by an event', () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const told: unknown[] = []
  const stop = subscribe('warning', event => told.push(event))
  warn('HOLDFAST_EVICTION', 'leases may be dropped by a', 'a')
  warn('HOLDFAST_EVICTION', 'leases may be dropped by a, again', 'a')
  warn('HOLDFAST_EVICTION', 'leases may be dropped by b', 'b')
  stop()
  const options = { type: 'HoldfastWarning', code: 'HOLDFAST_EVICTION' }
  expect(emit.mock.calls).toEqual([
    ['leases may be dropped by a', options],
    ['leases may be dropped by b', options],
  ])
  expect(told).toEqual([
    { code: 'HOLDFAST_EVICTION', message: 'leases may be dropped by a' },
    { code: 'HOLDFAST_EVICTION', message: 'leases may be dropped by b' },
  ])
  emit.mockRestore()
})

test('a thread does not repeat a warning that was given before it started', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  warn('HOLDFAST_WAKES', 'in the main thread', 'a')
  emit.mockRestore()
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const told = []
    process.emitWarning = message => told.push(message)
    import(workerData).then(({ warn }) => {
      warn('HOLDFAST_WAKES', 'again', 'a')
      warn('HOLDFAST_WAKES', 'another', 'b')
      parentPort.postMessage(told)
    })`
  const workerData = new URL('./warnings.ts', import.meta.url).href
  const [told] = await once(new Worker(program, { eval: true, workerData, execArgv: [] }), 'message')
  expect(told).toEqual(['another'])
})

test('F4: a program that waits for itself under many names gets ten warnings', () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  for (let index = 0; index < 1_000; index++) warn('HOLDFAST_SELF_WAIT', 'it waits', `order ${index}`)
  expect(emit).toHaveBeenCalledTimes(10)
  emit.mockRestore()
})
