import { randomFillSync } from 'node:crypto'

// One call of the random source for 256 ids: it costs about as much as for one.
const pool = Buffer.alloc(4_096)
let used = pool.length

/** 128 random bits in hexadecimal. */
export function randomId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += 16
  return pool.toString('hex', used - 16, used)
}
