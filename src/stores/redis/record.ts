import type { LeaseRecord } from '../../contract/store.ts'

interface Details {
  readonly owner: string
  readonly note: string
  /** The number of the note, where servers may differ: the highest is the latest. */
  readonly revision: number
}

/** The owner and note of a claim, as text without line breaks. The script does not interpret it. */
export function detailsOf({ owner, note }: Omit<Details, 'revision'>, revision?: number): string {
  return JSON.stringify(revision === undefined ? [owner, note] : [owner, note, revision])
}

/** The holder, from `token details`. */
export function holderOf(name: string, lease: string, remaining: number): LeaseRecord {
  const token = lease.slice(0, lease.indexOf(' '))
  const { owner, note } = read(lease, 1)
  return { name, state: 'held', token: BigInt(token), owner, note, remaining }
}

/** A waiter, from `channel asked round-trip details`. */
export function waiterOf(name: string, waiter: string, remaining: number, position: number): LeaseRecord {
  const { owner, note } = read(waiter, 3)
  return { name, state: 'waiting', owner, note, remaining, position }
}

/** The details after a number of words. Invalid details, which another program wrote, do not fail the request. */
export function read(text: string, words: number): Details {
  let start = 0
  for (let word = 0; word < words; word++) start = text.indexOf(' ', start) + 1
  try {
    const [owner, note, revision = 0] = JSON.parse(text.slice(start)) as unknown[]
    return { owner: String(owner), note: String(note), revision: Number(revision) }
  } catch {
    return { owner: '', note: '', revision: 0 }
  }
}
