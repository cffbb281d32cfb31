/** The body of a `Response`. */
export interface AnswerBody {
  /** Is read in parts, so that only the limit is kept. */
  readonly body?: ReadableStream<Uint8Array> | null
  /** Is called without `body`. */
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
    reader.cancel().catch(() => {}) // not awaited: that of a clone waits for the other one
    throw tooLong
  }
  return new Uint8Array(Buffer.concat(parts))
}
