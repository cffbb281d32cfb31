import type { LeaseRecord } from '../../store.ts'

/** What people may read of a claim, as one text without a line break that the script passes on unread. */
export function detailsOf({ owner, note }: { readonly owner: string; readonly note: string }): string {
  return JSON.stringify([owner, note])
}

/** The holder that the script tells of: `token details`. */
export function holderOf(name: string, lease: string, remaining: number): LeaseRecord {
  const token = lease.slice(0, lease.indexOf(' '))
  return { name, state: 'held', token: BigInt(token), ...read(lease, 1), remaining }
}

/** The waiter that a line tells of: `channel asked details`. */
export function waiterOf(name: string, waiter: string, remaining: number, position: number): LeaseRecord {
  return { name, state: 'waiting', ...read(waiter, 2), remaining, position }
}

/** The details after so many words. What another program wrote there is no reason to fail. */
export function read(text: string, words: number): { owner: string; note: string } {
  let start = 0
  for (let word = 0; word < words; word++) start = text.indexOf(' ', start) + 1
  try {
    const [owner, note] = JSON.parse(text.slice(start)) as unknown[]
    return { owner: String(owner), note: String(note) }
  } catch {
    return { owner: '', note: '' }
  }
}
