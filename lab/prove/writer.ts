import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onLines } from './lines.ts'
import type { WriteReply, WriteRequest } from './resource.ts'

/** Milliseconds after which a write that is not answered is given up. */
const LIMIT = 2_000

/** A client's connection to the guarded resource. */
export class Writer {
  readonly #socket: Socket
  readonly #pending = new Map<number, (outcome: 'wrote' | 'refused' | 'unsure') => void>()

  static async connect(port: number): Promise<Writer> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    await once(socket, 'connect')
    return new Writer(socket)
  }

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('close', () => {
      for (const settle of this.#pending.values()) settle('unsure')
    })
    onLines(socket, line => {
      const { write, accepted } = JSON.parse(line) as WriteReply
      this.#pending.get(write)?.(accepted ? 'wrote' : 'refused')
    })
  }

  /** Sent once: a write that is not answered is never tried again. */
  write(request: WriteRequest): Promise<'wrote' | 'refused' | 'unsure'> {
    const { promise, resolve } = Promise.withResolvers<'wrote' | 'refused' | 'unsure'>()
    const timer = setTimeout(() => resolve('unsure'), LIMIT)
    this.#pending.set(request.write, resolve)
    this.#socket.write(`${JSON.stringify(request)}\n`)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#pending.delete(request.write)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}
