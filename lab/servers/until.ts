export interface UntilOptions {
  /** The timeout in milliseconds, for what hangs: a busy machine takes long. @default 30_000 */
  readonly limit?: number
  /** Milliseconds between two checks, at least. @default a tenth of the time since the start, from 5 to 50 */
  readonly every?: number
}

/**
 * Checks again and again until `condition` returns something true, and resolves to that. A condition that throws is not
 * true yet. Its last error is the `cause` of the error after the timeout. The pauses are at least as long as the checks,
 * which so do not keep a slow server from what is waited for.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<NonNullable<T>> {
  const { limit = 30_000, every } = options
  const start = performance.now()
  let cause: unknown
  while (performance.now() - start < limit) {
    const began = performance.now()
    try {
      const answer = await condition()
      if (answer) return answer
      cause = undefined
    } catch (error) {
      cause = error
    }
    const now = performance.now()
    const pause = every ?? Math.min(Math.max(5, (now - start) / 10), 50)
    await new Promise(resolve => setTimeout(resolve, Math.max(now - began, pause)))
  }
  throw new Error(`not within ${limit} ms: ${what}`, { cause })
}
