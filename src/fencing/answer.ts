/** The body of a `Response`. */
export interface AnswerBody {
  /** The body as a stream. It is read in parts, so that no more than the limit is in memory. */
  readonly body?: ReadableStream<Uint8Array> | null
  /** Reads the body. Used if there is no `body`. */
  arrayBuffer(): Promise<ArrayBuffer>
}

/** Reads a body. Throws above `limit` bytes, because a server may send without end. */
export async function bytesOf(answer: AnswerBody, limit: number): Promise<Uint8Array> {
  const tooLong = new Error(`the answer is longer than ${limit} bytes`)
  const reader = answer.body?.getReader()
  if (!reader) {
    const bytes = new Uint8Array(await answer.arrayBuffer())
    if (bytes.length > limit) throw tooLong
    return bytes
  }
  const parts: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    length += value.length
    parts.push(value)
    if (length <= limit) continue
    reader.cancel().catch(() => {}) // not awaited: a clone waits for the cancellation of the other one
    throw tooLong
  }
  return new Uint8Array(Buffer.concat(parts))
}
