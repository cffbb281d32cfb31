import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Fault = 'killed' | 'unresponsive'

/** The values of the terms in the cells, in milliseconds. */
export type Given = Readonly<Record<'ttl' | 'wait' | 'grace' | 'timeout', number>>

/** The limits of each call in docs/operations/time-limits.md, in milliseconds. */
export function limits(given: Given): Map<string, Record<Fault, number>> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operations/time-limits.md'), 'utf8')
  const [first = ''] = page.split('\n## ') // other tables follow
  const rows = [...first.matchAll(/^\| (.+?) \| (.+?) \| (.+?) \| .+ \|$/gm)].slice(2)
  return new Map(
    rows.map(([, call = '', killed = '', unresponsive = '']) => [
      call,
      { killed: sum(killed, given), unresponsive: sum(unresponsive, given) },
    ]),
  )
}

function sum(cell: string, given: Given): number {
  return cell
    .split(' + ')
    .map(term => milliseconds(term, given))
    .reduce((one, other) => one + other)
}

function milliseconds(term: string, { ttl, wait, grace, timeout }: Given): number {
  const [, seconds] = /^(\d+) s$/.exec(term) ?? []
  if (seconds) return Number(seconds) * 1_000
  const known = { 'at once': 0, 'ttl/3': Math.min(ttl / 3, 5_000), ttl, wait, grace, timeout }
  if (Object.hasOwn(known, term)) return known[term as keyof typeof known]
  throw new Error(`docs/operations/time-limits.md: the term ${JSON.stringify(term)} is unknown`)
}
