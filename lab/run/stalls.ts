import type { Recorder } from '../judge/history.ts'
import { STALL } from '../judge/overlap.ts'

/** Milliseconds between two looks at the clock. */
const EVERY = 25

/** Records when the machine keeps this process from running for long. Returns how to end it. */
export function recordStalls(history: Recorder, client?: number): () => void {
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    const ms = Math.round(now - last - EVERY)
    last = now
    if (ms > STALL) history.write('stalled', { ms, ...(client !== undefined && { client }) })
  }, EVERY)
  return () => clearInterval(timer.unref())
}
