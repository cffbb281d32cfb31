import type { Mark } from '../mark.ts'

/** The mark and the body of an object. */
export interface Envelope {
  /** `undefined` for an object that was never fenced. */
  readonly mark: Mark | undefined
  /** `undefined` if the object was touched but not yet written. */
  readonly body: Uint8Array | undefined
}

// One line of JSON before the body. It is not in metadata, because the ETag of S3 and similar services is a hash of the
// body alone. If a newer holder wrote an unchanged body, the ETag would stay the same, and an older holder that had read
// it before would not be refused.
const LINE = /^\{"fencing-token":"(0|[1-9]\d{0,18})","epoch":(\d{1,10}),"written":(true|false)\}\n/
const LONGEST_LINE = 100

export function seal(mark: Mark, body: Uint8Array | undefined): Uint8Array {
  const line = `{"fencing-token":"${mark.token}","epoch":${mark.epoch},"written":${body !== undefined}}\n`
  return Buffer.concat([Buffer.from(line), body ?? Buffer.alloc(0)])
}

export function unseal(bytes: Uint8Array): Envelope {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LONGEST_LINE)).toString('latin1')
  const [line, token, epoch, written] = LINE.exec(start) ?? []
  if (line === undefined) return { mark: undefined, body: bytes }
  const mark = { epoch: Number(epoch), token: BigInt(token as string) }
  return { mark, body: written === 'true' ? bytes.subarray(line.length) : undefined }
}
