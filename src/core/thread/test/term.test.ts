import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { SharedTerm } from '../term.ts'

test('concurrent writes and reads of two threads are never mixed, even if the writer is killed', async () => {
  const epoch = { monotonic: 0n, wall: 0 }
  const read = new Set<number | undefined>()
  for (let round = 0; round < 3; round += 1) {
    const term = new SharedTerm(undefined, () => epoch)
    const worker = new Worker(new URL('./term-writer.ts', import.meta.url), { workerData: term.memory, execArgv: [] })
    while (term.read() === undefined) await new Promise(resolve => setImmediate(resolve))
    for (let count = 0; count < 2_000; ) {
      const remaining = term.read()
      if (remaining === undefined) continue
      read.add(remaining)
      count += 1
    }
    const ended = once(worker, 'exit')
    await worker.terminate()
    await ended
    read.add(new SharedTerm(term.memory, () => epoch).read())
  }
  expect([...read]).toEqual([1_000]) // 1,000 - n, less the time from n to 0
}, 60_000)
