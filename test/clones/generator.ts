import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

// Replaces the random generator of this process by one that starts alike in every process, as after a resume from a
// snapshot of memory.
let state = 0

function fill<T extends NodeJS.ArrayBufferView>(view: T): T {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[i] = state >>> 16
  }
  return view
}

const uuid = (): string => {
  const hex = fill(Buffer.alloc(16)).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join('-')
}
const replaced = { randomFillSync: fill, randomBytes: (size: number) => fill(Buffer.alloc(size)), randomUUID: uuid }
Object.assign(crypto, replaced)
Object.assign(globalThis.crypto, { getRandomValues: fill, randomUUID: uuid })
syncBuiltinESMExports()
