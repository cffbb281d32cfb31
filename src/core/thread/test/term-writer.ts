import { workerData } from 'node:worker_threads'
import { SharedTerm } from '../term.ts'

// Writes terms whose three numbers belong together, as fast as it can, until it is terminated.
let n = 0
const term = new SharedTerm(workerData as SharedArrayBuffer, () => ({ monotonic: BigInt(n) * 1_000_000n, wall: n }))
for (;;) {
  n += 1
  term.write(() => 1_000 - n)
}
