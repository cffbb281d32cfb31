import { connect } from 'node:net'
import { lookup } from './lookup.ts'
import { afterReads } from './timeouts.ts'

/** The address of a server. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** How a server is asked without TLS, and how it answers if it does not speak TLS. */
export interface Question {
  readonly ask: string | Uint8Array
  readonly answer: RegExp
}

/** Milliseconds for the answer. */
const PATIENCE = 500

/** A server without TLS ends a handshake, or waits for more, and does not say why. A question without TLS tells. */
export function isPlain({ host, port }: Endpoint, { ask, answer }: Question, signal?: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, lookup, signal }, () => socket.write(ask)).unref()
  const stopTimer = afterReads(PATIENCE, () => socket.destroy())
  socket.once('data', data => {
    resolve(answer.test(String(data)))
    socket.destroy()
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    stopTimer()
    resolve(false)
  })
  return promise
}
