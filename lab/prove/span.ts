/** Time from one moment up to another, in milliseconds. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** The same time, in order and without overlaps; gaps shorter than `gap` count in. */
export function union(spans: readonly Span[], gap = 0): Span[] {
  const joined: Span[] = []
  for (const span of spans.filter(({ from, to }) => to > from).sort((one, other) => one.from - other.from)) {
    const last = joined.at(-1)
    if (last && span.from <= last.to + gap)
      joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, span.to) }
    else joined.push(span)
  }
  return joined
}

/** What is left of `spans` without the time of `others`. */
export function without(spans: readonly Span[], others: readonly Span[]): Span[] {
  const left: Span[] = []
  const holes = union(others)
  let next = 0
  for (const span of union(spans)) {
    let { from } = span
    for (let hole = holes[next]; hole && hole.from < span.to; hole = holes[next]) {
      left.push({ from, to: hole.from })
      from = Math.max(from, hole.to)
      if (hole.to > span.to) break
      next += 1
    }
    left.push({ from, to: span.to })
  }
  return left.filter(({ from, to }) => to > from)
}
