import { pause } from '../request.ts'
import type { Host } from './host.ts'

/** Waits `delay` ms, or until `stop` aborts; never rejects. */
export async function rest({ clock }: Host, delay: number, stop: AbortSignal): Promise<void> {
  if (delay <= 0 || stop.aborted) return
  let end = (): void => {}
  const arm = (wake: () => void): void => {
    end = wake
    stop.addEventListener('abort', end)
  }
  await pause(clock, delay, { arm })
  stop.removeEventListener('abort', end)
}

/** Settles as `work` does, or resolves to `undefined` once `stop` aborts. */
export function unlessStopped<Value>(work: Promise<Value>, stop: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined)
    if (stop.aborted) end()
    stop.addEventListener('abort', end)
    const settled = work.then(resolve, reject)
    void settled.finally(() => stop.removeEventListener('abort', end))
  })
}

/** A signal that aborts with the first of these; `undefined` never does. */
export function anyOf(signal: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return signal ? AbortSignal.any([signal, other]) : other
}
