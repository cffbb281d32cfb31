import { text } from 'node:stream/consumers'
import type { Register } from '../cas/index.ts'
import { PATIENCE } from '../wire/timeouts.ts'
import { failure, isConflict, isMissing } from './failure.ts'
import { MARGIN } from './guarantees.ts'

/** Before the names of blobs, unless a caller gives another. */
export const PREFIX = 'holdfast/'

/**
 * The number of requests that a store sends at once. Others would keep Azure busy even after they were given up. If none was
 * answered for a second, those that wait are sent, too: the others may hang on dead connections, and so may their copies.
 */
const AT_ONCE = 50

/** The part of a `ContainerClient` of `@azure/storage-blob` that is used. */
export interface AzureContainer {
  getBlockBlobClient(name: string): {
    download(
      offset: number,
      count: undefined,
      options: { abortSignal: AbortSignal },
    ): Promise<{
      readonly etag?: string | undefined
      readonly date?: Date | undefined
      readonly lastModified?: Date | undefined
      readonly readableStreamBody?: NodeJS.ReadableStream | undefined
    }>
    upload(
      body: string,
      bytes: number,
      options: { abortSignal: AbortSignal; conditions: { ifMatch?: string; ifNoneMatch?: string } },
    ): Promise<{ readonly etag?: string | undefined }>
  }
  listBlobsFlat(options: { prefix: string; abortSignal: AbortSignal }): AsyncIterable<{ readonly name: string }>
}

/** A blob for each key. Versions are ETags. */
export class Blobs implements Register<string> {
  readonly maxBytes = 400_000
  readonly knowsAge = true
  readonly #container: AzureContainer
  readonly #prefix: string
  readonly #turns: (() => void)[] = []
  #sent = 0
  /** When a request last ended. */
  #answeredAt = 0

  constructor(container: AzureContainer, prefix: string) {
    this.#container = container
    this.#prefix = prefix
  }

  async read(key: string, abortSignal: AbortSignal): ReturnType<Register<string>['read']> {
    try {
      return await this.#inTurn('push', abortSignal, async () => {
        const blob = await this.#blob(key).download(0, undefined, { abortSignal })
        const { etag, date, lastModified, readableStreamBody: body } = blob
        if (!etag || !body || !date || !lastModified) throw new Error('the answer has no ETag, date or body')
        const age = Math.max(0, date.getTime() - lastModified.getTime() - MARGIN)
        return { value: await text(body), version: etag, age }
      })
    } catch (error) {
      if (isMissing(error)) return undefined
      throw failure(error)
    }
  }

  async write(
    key: string,
    value: string,
    expected: string | undefined,
    abortSignal: AbortSignal,
  ): Promise<string | undefined> {
    const conditions = expected === undefined ? { ifNoneMatch: '*' } : { ifMatch: expected }
    try {
      const options = { abortSignal, conditions }
      const { etag } = await this.#inTurn('unshift', abortSignal, () =>
        this.#blob(key).upload(value, Buffer.byteLength(value), options),
      )
      if (!etag) throw new Error('the answer has no ETag')
      return etag
    } catch (error) {
      if (isConflict(error) || isMissing(error)) return undefined
      throw failure(error)
    }
  }

  async *list(prefix: string, abortSignal: AbortSignal): ReturnType<Register<string>['list']> {
    const { length } = this.#prefix
    try {
      for await (const { name } of this.#container.listBlobsFlat({ prefix: this.#prefix + prefix, abortSignal }))
        yield { key: name.slice(length) }
    } catch (error) {
      throw failure(error)
    }
  }

  /**
   * Sends a request when it is its turn, unless it is given up before. A write is `unshift`, so before all reads: what was
   * read is written, and renewed, before more is begun.
   */
  async #inTurn<Answer>(how: 'push' | 'unshift', signal: AbortSignal, send: () => Promise<Answer>): Promise<Answer> {
    if (this.#sent < AT_ONCE) this.#sent += 1
    else await this.#turn(how, signal)
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      const next = this.#turns.shift()
      if (next) next()
      else this.#sent -= 1
    }
    const look = (): void => {
      if (performance.now() - this.#answeredAt >= PATIENCE) end()
    }
    const timer = setInterval(look, PATIENCE).unref()
    try {
      signal.throwIfAborted()
      return await send()
    } finally {
      this.#answeredAt = performance.now()
      clearInterval(timer)
      end()
    }
  }

  #turn(how: 'push' | 'unshift', signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#turns.splice(this.#turns.indexOf(go), 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#turns[how](go)
    })
  }

  #blob(key: string): ReturnType<AzureContainer['getBlockBlobClient']> {
    return this.#container.getBlockBlobClient(this.#prefix + key)
  }
}
