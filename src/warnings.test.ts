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
