import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { PostgresServer } from '../../../../lab/servers/postgres.ts'

/** How the answer to the next request goes wrong. */
export type Mistake =
  /** It is repeated when the next request arrives, and so looks like the answer to that. */
  | 'repeated'
  /** It is lost, so that the next answer takes its place. */
  | 'missing'

/**
 * A pooler that mixes up answers, as pgbouncer 1.18 does when several requests are under way. It knows of PostgreSQL's
 * protocol where an answer ends: https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
export async function startShiftingPooler(server: PostgresServer): Promise<ShiftingPooler> {
  const pooler = new ShiftingPooler(server)
  await pooler.listen()
  return pooler
}

export class ShiftingPooler implements AsyncDisposable {
  /** Of the next answer that there is. */
  mistake: Mistake | undefined
  #port = 0
  readonly #server: PostgresServer
  readonly #sockets = new Set<Socket>()
  readonly #listener = createServer({ noDelay: true }, client => this.#serve(client))

  constructor(server: PostgresServer) {
    this.#server = server
  }

  async listen(): Promise<void> {
    this.#listener.listen(0, '127.0.0.1')
    await once(this.#listener, 'listening')
    this.#port = (this.#listener.address() as { port: number }).port
  }

  get url(): string {
    return this.#server.urlBy(this.#port)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(client: Socket): void {
    const server = connect({ host: this.#server.host, port: this.#server.port, noDelay: true })
    let isLoggedIn = false
    let again: Buffer | undefined
    let received: Buffer = Buffer.alloc(0)
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', request => {
      if (again) client.write(again)
      again = undefined
      server.write(request)
    })
    server.on('data', piece => {
      received = Buffer.concat([received, piece])
      for (let end = endOfAnswer(received); end > 0; end = endOfAnswer(received)) {
        const answer = received.subarray(0, end)
        received = received.subarray(end)
        const mistake = isLoggedIn ? this.mistake : undefined
        isLoggedIn = true
        if (mistake !== 'missing') client.write(answer)
        if (mistake === 'repeated') again = answer
        if (mistake) this.mistake = undefined
      }
    })
  }
}

/** Behind the first ReadyForQuery; 0 if that has not come yet. */
function endOfAnswer(bytes: Buffer): number {
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1)
    if (end <= bytes.length && bytes[at] === 'Z'.charCodeAt(0)) return end
    at = end
  }
  return 0
}
