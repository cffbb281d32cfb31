import { LONGEST_DELAY } from '../contract/timers.ts'
import { Usage } from './failure.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/**
 * Parses `500ms`, `1.5s`, `5m` or `1h` to milliseconds. Throws `Usage`. A number without a unit is refused, because it is
 * seconds in `sleep 10` and milliseconds in `setTimeout(10)`.
 */
export function parseDuration(text: string, option: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h)$/.exec(text)
  if (!match) {
    if (/^\d+(\.\d+)?$/.test(text)) {
      throw new Usage(`${option} ${text}: a duration needs a unit: did you mean ${text}s or ${text}ms?`)
    }
    throw new Usage(
      `${option} ${text || "''"} is not a duration: expected a number and ms, s, m or h, such as 1.5s or 5m`,
    )
  }
  const exact = Number(match[1]) * (UNITS[match[2] as string] as number)
  const ms = Math.round(exact)
  // 1.1 * 1000 is 1100.0000000000002, so only a larger fraction is refused.
  if (Math.abs(exact - ms) > 1e-6 * Math.max(1, ms)) {
    throw new Usage(`${option} ${text} has a fraction of a millisecond: expected whole milliseconds`)
  }
  if (ms > LONGEST_DELAY) throw new Usage(`${option} ${text} is too long: expected at most 596h (24.8 days)`)
  return ms
}

/** Formats milliseconds for people: `850 ms`, `2.9 s`, `4 min 5 s`, `3 h 20 min`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_950) return `${Number((ms / 1_000).toFixed(1))} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return join(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  const minutes = Math.round(seconds / 60)
  return join(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
}

function join(large: number, unit: string, small: number, smallUnit: string): string {
  return small ? `${large} ${unit} ${small} ${smallUnit}` : `${large} ${unit}`
}
