import { connect } from 'node:net'
import { lookup } from './lookup.ts'
import { afterReads } from './timeouts.ts'

/** The address of a server. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** The request that is sent to a server without TLS, and the answer of a server that does not speak TLS. */
export interface Question {
  readonly ask: string | Uint8Array
  readonly answer: RegExp
}

/** The milliseconds in which the answer must arrive. */
const PATIENCE = 500

/**
 * Does the server speak without TLS? Such a server ends a TLS handshake or waits for more, and does not say why. Its answer
 * to a request without TLS shows it.
 */
export function isPlain({ host, port }: Endpoint, { ask, answer }: Question, signal?: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, lookup }, () => socket.write(ask)).unref()
  const stop = (): void => void socket.destroy()
  const stopTimer = afterReads(PATIENCE, stop)
  signal?.addEventListener('abort', stop)
  socket.once('data', data => {
    resolve(answer.test(String(data)))
    socket.destroy()
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    stopTimer()
    signal?.removeEventListener('abort', stop)
    resolve(false)
  })
  return promise
}
