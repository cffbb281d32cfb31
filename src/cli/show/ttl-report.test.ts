import { expect, test } from 'vitest'
import { memory } from '../../stores/memory/index.ts'
import { report, text } from './ttl-report.ts'

test('a p99.9 was reported of so few heartbeats that it was the worst one', () => {
  expect(reported(999)).not.toContain('p99.9')
  expect(reported(1_000)).toContain('p99.9 1 ms')
})

test('one heartbeat was called heartbeats', () => {
  expect(reported(1)).toMatch(/^1 heartbeat over memory in 1 s, none failed\n/)
  expect(reported(2)).toMatch(/^2 heartbeats /)
})

function reported(answers: number): string {
  const latencies = Array<number>(answers).fill(1)
  const loopDelay = { p99: 0, worst: 0 }
  const gc = { pauses: 0, worst: 0, total: 0 }
  return text(
    report({ duration: 1_000, latencies, failed: 0, unresponsiveness: 1, loopDelay, gc, lost: undefined }, memory()),
  )
}
