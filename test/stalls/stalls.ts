import { readFileSync } from 'node:fs'

/** Milliseconds after which a test that hangs fails. */
export const LIMIT = 60_000

/** Milliseconds without a turn that count as a stall of the machine. */
export const STALL = 50

/** The longest stall in ms that ended after `since` (ms since 1970), as the monitor wrote it to the file. */
export function longestStall(file: string, since: number): number {
  const stalls = readFileSync(file, 'utf8').trimEnd().split('\n')
  return stalls.reduce((longest, line) => {
    const [end = 0, duration = 0] = line.split(' ').map(Number)
    return end >= since ? Math.max(longest, duration) : longest
  }, 0)
}
