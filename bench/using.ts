import type { Held } from './peer.ts'

/** What redlock 5 and its descendant have in common. */
export interface Redlock {
  acquire(resources: string[], ttl: number): Promise<{ release(): Promise<unknown> }>
  using(resources: string[], ttl: number, work: (signal: AbortSignal) => Promise<void>): Promise<void>
  on(event: 'error', listener: () => void): unknown
}

/** A lease that a library keeps while a function runs, as one to release. */
export function heldBy(
  using: (work: (signal: AbortSignal, isHeld?: () => boolean) => Promise<void>) => Promise<unknown>,
  onLost: () => void,
): Promise<Held> {
  return new Promise((resolve, reject) => {
    const ended: Promise<unknown> = using(
      (signal, isHeld = () => true) =>
        new Promise(end => {
          signal.addEventListener('abort', onLost, { once: true })
          const release = (): Promise<unknown> => {
            end()
            return ended
          }
          resolve({ release, isHeld: () => !signal.aborted && isHeld() })
        }),
    )
    ended.catch(reject)
  })
}
