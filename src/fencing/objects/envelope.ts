import type { Mark } from '../mark.ts'

/** An object, taken apart. */
export interface Envelope {
  /** `undefined` for an object that was never fenced. */
  readonly mark: Mark | undefined
  /** `undefined` if it was touched and not written yet. */
  readonly body: Uint8Array | undefined
}

// One line of JSON before the body. In the body and not in metadata, since the ETag of S3 and its like is a hash of the
// body alone: a newer holder that writes what was there already would leave the ETag as it is, and an older one that has
// read that before would pass.
const LINE = /^\{"fencing-token":"(0|[1-9]\d{0,18})","lineage":(\d{1,10}),"written":(true|false)\}\n/
const LONGEST_LINE = 100

export function seal(mark: Mark, body: Uint8Array | undefined): Uint8Array {
  const line = `{"fencing-token":"${mark.token}","lineage":${mark.lineage},"written":${body !== undefined}}\n`
  return Buffer.concat([Buffer.from(line), body ?? Buffer.alloc(0)])
}

export function unseal(bytes: Uint8Array): Envelope {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LONGEST_LINE)).toString('latin1')
  const [line, token, lineage, written] = LINE.exec(start) ?? []
  if (line === undefined) return { mark: undefined, body: bytes }
  const mark = { lineage: Number(lineage), token: BigInt(token as string) }
  return { mark, body: written === 'true' ? bytes.subarray(line.length) : undefined }
}
