/** A state that can be written as JSON, and the words for a step to it. */
export type Steps<State> = (state: State) => Iterable<readonly [what: string, to: State]>

/** Searches all states breadth-first: a shortest path to a violation, a line for each step; `undefined` if there is none. */
export function explore<State>(
  start: State,
  stepsOf: Steps<State>,
  violationOf: (state: State) => string | undefined,
): string[] | undefined {
  const seen = new Set<string>()
  const order: { readonly state: State; readonly path: readonly string[] }[] = []
  const visit = (state: State, path: readonly string[]): void => {
    const key = JSON.stringify(state)
    if (seen.has(key)) return
    seen.add(key)
    order.push({ state, path })
  }
  visit(start, [])
  for (const { state, path } of order) {
    const violation = violationOf(state)
    if (violation) return [...path, violation]
    for (const [what, to] of stepsOf(state)) visit(to, [...path, what])
  }
  return undefined
}
