import { Refusal } from './failure.ts'

/**
 * The largest number of characters in an answer, or in one message of a stream: enough for the queue of one name with
 * 80,000 waiters.
 */
const LONGEST_ANSWER = 32 * 1_024 * 1_024
/** The largest number of characters in an error response. Messages show at most 200 of them. */
const LONGEST_REFUSAL = 64 * 1_024

/** Receives the text of a response. */
interface Reader {
  onMessage(message: unknown): void
  onEnd(): void
  /** May be called more than once. */
  onFailure(error: Error): void
  /** The rest of the response need not be read. */
  stop(): void
}

/** Reads the text of one HTTP response: an error, or JSON messages, each on its own line. */
export class Answer {
  readonly #status: number | undefined
  readonly #isStream: boolean
  readonly #reader: Reader
  /** The incomplete line, or the error response. */
  #rest = ''
  #length = 0
  #isEmpty = true

  /** `isStream`: the answer may have any length, and only each message is limited. */
  constructor(status: number | undefined, isStream: boolean, reader: Reader) {
    this.#status = status
    this.#isStream = isStream
    this.#reader = reader
  }

  read(chunk: string): void {
    this.#length += chunk.length
    if (this.#isRefused) {
      this.#rest += chunk
      if (this.#length > LONGEST_REFUSAL) this.#stop(this.#refusal)
    } else {
      this.#readLines(chunk)
      if (this.#length > LONGEST_ANSWER) this.#stop(new Error('the answer is longer than 32 MB'))
    }
  }

  end(): void {
    if (!this.#isRefused && this.#rest.trim()) this.#readMessage(this.#rest)
    if (this.#isRefused) this.#reader.onFailure(this.#refusal)
    else if (this.#isEmpty) this.#reader.onFailure(new Error('the answer is empty'))
    else this.#reader.onEnd()
  }

  get #isRefused(): boolean {
    return this.#status !== 200
  }

  get #refusal(): Refusal {
    return refusalOfBody(this.#status, this.#rest)
  }

  /** Searches only the new piece. Searching a long line again with every piece would take quadratic time. */
  #readLines(chunk: string): void {
    const lines = chunk.split('\n')
    lines[0] = this.#rest + lines[0]
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#readMessage(line)
    if (this.#isStream) this.#length = this.#rest.length
  }

  #readMessage(text: string): void {
    this.#isEmpty = false
    try {
      const message = JSON.parse(text) as { error?: unknown; result?: unknown }
      if (message.error !== undefined) this.#reader.onFailure(refusalOf(message))
      else this.#reader.onMessage(message.result ?? message)
    } catch (error) {
      this.#stop(error as Error)
    }
  }

  #stop(error: Error): void {
    this.#reader.onFailure(error)
    this.#reader.stop()
  }
}

function refusalOfBody(status: number | undefined, body: string): Refusal {
  let text = body.trim()
  try {
    const refusal = refusalOf(JSON.parse(body) as object)
    if (refusal.code !== -1) return refusal
    text = refusal.message
  } catch {
    // This is not JSON, so it does not come from etcd.
  }
  return new Refusal(-1, `HTTP ${status}${text && `: ${text}`}`)
}

/** Parses `{ error: text, code }` or `{ message, code }`, in streams `{ error: { message, grpc_code } }`. */
function refusalOf(body: object): Refusal {
  const { error } = body as { error?: unknown }
  const { message, code, grpc_code } = (typeof error === 'object' ? error : body) as Record<string, unknown>
  const text = [message, error].find(each => typeof each === 'string')
  return new Refusal(Number(grpc_code ?? code ?? -1), text ?? JSON.stringify(body))
}
