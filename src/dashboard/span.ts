const UNITS: readonly [limit: number, unit: number, name: string][] = [
  [120, 1, 's'],
  [120 * 60, 60, 'min'],
  [48 * 3600, 3600, 'h'],
  [Number.POSITIVE_INFINITY, 86_400, 'd'],
]

/** Formats milliseconds for people: `2.5 s`, `30 s`, `5 min`. */
export function span(ms: number): string {
  const seconds = Math.max(ms, 0) / 1_000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  const [, unit, name] = UNITS.find(([limit]) => seconds < limit) ?? [0, 1, 's']
  return `${Math.round(seconds / unit)} ${name}`
}
