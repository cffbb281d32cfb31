export interface UntilOptions {
  /** Milliseconds after which it is given up. @default 10_000 */
  readonly limit?: number
  /** Milliseconds between two looks. @default 5 */
  readonly every?: number
}

/**
 * Looks again and again until `condition` answers something true, and resolves to that. A condition that throws is
 * not true yet; what it threw last is the `cause` when the limit passes.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<NonNullable<T>> {
  const { limit = 10_000, every = 5 } = options
  const start = performance.now()
  let cause: unknown
  while (performance.now() - start < limit) {
    try {
      const answer = await condition()
      if (answer) return answer
      cause = undefined
    } catch (error) {
      cause = error
    }
    await new Promise(resolve => setTimeout(resolve, every))
  }
  throw new Error(`not within ${limit} ms: ${what}`, { cause })
}
