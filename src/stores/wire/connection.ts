import { LONGEST_REQUEST } from '../../contract/time.ts'

/** One open connection of a store, and what the store knows about its server. */
export interface Connection {
  /**
   * Calls `ended` when the connection has ended by itself. If it consists of several, this is when any of them has ended.
   */
  onEnd(ended: () => void): void
  /** Returns false if a request would certainly fail. */
  isOpen(): boolean
  /** Closes the connection. Requests in flight reject. */
  close(): void
}

/** Opens the store's own connections, with the settings of the caller's client. `signal` ends the attempt. */
export interface Driver<Opened extends Connection> {
  open(signal: AbortSignal): Promise<Opened>
}

/**
 * Opens a connection and runs `first` on it, all within 5 s. Rejects once `closing` aborts. Without the limit, a server
 * that accepts connections and then hangs would keep callers waiting forever.
 */
export async function openConnection<Opened extends Connection>(
  driver: Driver<Opened>,
  first: (connection: Opened) => Promise<void>,
  closing: AbortSignal,
): Promise<Opened> {
  closing.throwIfAborted()
  const late = new AbortController()
  const lateness = new Promise<never>((_, reject) => {
    const error = new Error(`not connected within ${LONGEST_REQUEST} ms`)
    late.signal.addEventListener('abort', () => reject(error), { once: true })
  })
  lateness.catch(() => {}) // it may abort when nobody waits any more
  const giveUp = (): void => late.abort()
  const timer = setTimeout(giveUp, LONGEST_REQUEST).unref()
  closing.addEventListener('abort', giveUp)
  let connection: Opened | undefined
  try {
    const opening = driver.open(late.signal)
    opening.then(opened => late.signal.aborted && opened.close()).catch(() => {})
    connection = await Promise.race([opening, lateness])
    await Promise.race([first(connection), lateness])
    return connection
  } catch (error) {
    connection?.close()
    // The client may have reported first that the connection was given up.
    throw late.signal.aborted ? await lateness : error
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', giveUp)
  }
}
