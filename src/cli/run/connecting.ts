import { type ConnectOptions, connect, type Locks, subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import type { Output } from '../output.ts'

/** Milliseconds after which a message says that the store does not answer. */
const PATIENCE = 1_000

/** Does what `connect` does. If the store does not answer, prints once that it does not, and why. */
export async function connectedTo(
  url: string,
  options: ConnectOptions & { readonly timeout: number },
  output: Output,
): Promise<Locks> {
  const { timeout } = options
  const limit = Number.isFinite(timeout) ? `for up to ${formatDuration(timeout)}` : 'until it answers'
  const began = performance.now()
  const stop = subscribe('request_failed', ({ error }) => {
    if (!error.retryable || performance.now() < began + PATIENCE) return
    stop()
    output.info('connecting', `the store does not answer, and is asked again ${limit}: ${error.message}`)
  })
  try {
    return await connect(url, options)
  } finally {
    stop()
  }
}
