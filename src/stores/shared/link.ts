import { LONGEST_REQUEST } from '../../contract/time.ts'

/** A connection of a store's own. */
export interface AnyLink {
  /** Calls `ended` when the connection has ended by itself; of several that serve as one, when any of them has. */
  onEnd(ended: () => void): void
  /** False when a request would certainly fail. */
  isOpen(): boolean
  /** What is under way rejects. */
  close(): void
}

/** How a connection of one kind is had. `signal` ends the attempt. */
export interface Opener<Kind extends AnyLink> {
  open(signal: AbortSignal): Promise<Kind>
}

/**
 * A connection on which `first` was done, all within the longest request, and none once `closing` aborts: a server that
 * takes a connection and says no more, as one that stands still does, must not keep everybody waiting for ever.
 */
export async function openLink<Kind extends AnyLink>(
  opener: Opener<Kind>,
  first: (link: Kind) => Promise<void>,
  closing: AbortSignal,
): Promise<Kind> {
  const late = new AbortController()
  const lateness = new Promise<never>((_, reject) => {
    const error = new Error(`not connected within ${LONGEST_REQUEST} ms`)
    late.signal.addEventListener('abort', () => reject(error), { once: true })
  })
  lateness.catch(() => {}) // it may be late when nobody looks any more
  const giveUp = (): void => late.abort()
  const timer = setTimeout(giveUp, LONGEST_REQUEST).unref()
  closing.addEventListener('abort', giveUp)
  if (closing.aborted) giveUp()
  let link: Kind | undefined
  try {
    const opening = opener.open(late.signal)
    opening.then(opened => late.signal.aborted && opened.close()).catch(() => {})
    link = await Promise.race([opening, lateness])
    await Promise.race([first(link), lateness])
    return link
  } catch (error) {
    link?.close()
    // The client may have noticed first that it was given up.
    throw late.signal.aborted ? await lateness : error
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', giveUp)
  }
}

/** What a store knows of one connection. */
export interface AnySession {
  readonly link: AnyLink
}
