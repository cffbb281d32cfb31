import { connect } from 'node:net'
import { lookup } from '../shared/lookup.ts'

/** Milliseconds after which a TLS connection counts as hanging. Shorter than the limit of a request with a ttl of 1 s. */
const PATIENCE = 250

/** The address of a single server, for a client with TLS. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/**
 * Runs `open`. It hangs if the port does not speak TLS, because Redis reads the handshake as an incomplete command. After
 * 250 ms a plain PING on another connection detects this, and the call rejects.
 */
export async function unlessPlain<Opened>(
  { host, port }: Endpoint,
  open: (signal: AbortSignal) => Promise<Opened>,
  closing: AbortSignal,
): Promise<Opened> {
  const over = new AbortController()
  const { promise: isPlain, reject } = Promise.withResolvers<never>()
  const ask = (): void => {
    const socket = connect({ host, port, lookup, signal: over.signal }, () => socket.write('PING\r\n')).unref()
    socket.on('error', () => {})
    socket.once('data', answer => {
      if (/^[+-]/.test(String(answer)))
        reject(new Error("this port does not speak TLS: use redis://, or leave out the client's option tls"))
      socket.destroy()
    })
  }
  const timer = setTimeout(ask, PATIENCE).unref()
  try {
    return await Promise.race([open(AbortSignal.any([closing, over.signal])), isPlain])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
