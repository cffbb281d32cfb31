import { type Endpoint, isPlain } from '../wire/plain.ts'

/**
 * Milliseconds after which a TLS connection counts as hanging. This is shorter than the limit of a request with a ttl of 1
 * s.
 */
const PATIENCE = 250

/**
 * Runs `open`. That hangs if the port does not speak TLS, because Redis reads the handshake as an incomplete command. After
 * 250 ms a PING without TLS on another connection detects this, and the call rejects.
 */
export async function unlessPlain<Opened>(
  endpoint: Endpoint,
  open: (signal: AbortSignal) => Promise<Opened>,
  closing: AbortSignal,
): Promise<Opened> {
  const over = new AbortController()
  const { promise: plain, reject } = Promise.withResolvers<never>()
  const ask = async (): Promise<void> => {
    if (await isPlain(endpoint, { ask: 'PING\r\n', answer: /^[+-]/ }, over.signal))
      reject(new Error('this port does not speak TLS'))
  }
  const timer = setTimeout(() => void ask(), PATIENCE).unref()
  try {
    return await Promise.race([open(AbortSignal.any([closing, over.signal])), plain])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
