import { pause } from '../contract/request.ts'
import type { Host } from '../core/host.ts'

/** Waits `delay` ms, or until `stop` aborts; never rejects. */
export async function sleep({ clock }: Host, delay: number, stop: AbortSignal): Promise<void> {
  if (delay <= 0 || stop.aborted) return
  let end = (): void => {}
  const arm = (wake: () => void): void => {
    end = wake
    stop.addEventListener('abort', end)
  }
  await pause(clock, delay, { arm })
  stop.removeEventListener('abort', end)
}

/** Settles as `work` does, or resolves to `undefined` when `stop` aborts. */
export function unlessStopped<Value>(work: Promise<Value>, stop: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined)
    if (stop.aborted) end()
    stop.addEventListener('abort', end)
    const settled = work.then(resolve, reject)
    void settled.finally(() => stop.removeEventListener('abort', end))
  })
}

/** A signal that aborts with the first of these; `undefined` never aborts. */
export function anyOf(signal: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return signal ? AbortSignal.any([signal, other]) : other
}

/**
 * Lets `return()` of a generator abort `stop` while the generator waits for its next item. A plain generator would finish
 * that wait first, perhaps never.
 */
export function interruptible<Item>(items: AsyncGenerator<Item, void, undefined>, stop: AbortController): typeof items {
  const { next, return: leave } = items
  let waiting = 0
  items.next = () => {
    waiting += 1
    return next.call(items).finally(() => {
      waiting -= 1
    })
  }
  items.return = () => {
    if (waiting > 0) stop.abort()
    return leave.call(items)
  }
  return items
}
