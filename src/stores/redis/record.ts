import type { LeaseRecord } from '../../contract/store.ts'

interface Details {
  readonly owner: string
  readonly note: string
  /** The number of the note, for stores whose servers may differ. The highest number is the latest note. */
  readonly revision: number
}

/** The owner and note of a claim as text without line breaks. The script does not interpret it. */
export function detailsOf({ owner, note }: Omit<Details, 'revision'>, revision?: number): string {
  return JSON.stringify(revision === undefined ? [owner, note] : [owner, note, revision])
}

/** Parses a holder from `token details` or `token/limit/slots details`. */
export function holderOf(name: string, lease: string, remaining: number): LeaseRecord {
  const [token = '', limit, slots] = lease.slice(0, lease.indexOf(' ')).split('/')
  const { owner, note } = read(lease, 1)
  const record: LeaseRecord = { name, state: 'held', token: BigInt(token), owner, note, remaining }
  return slots === undefined ? record : { ...record, limit: Number(limit), slots: slotsOf(slots) }
}

/** Parses the slots of a claim from `0,1,2`. */
export function slotsOf(slots: string): number[] {
  return slots.split(',').map(Number)
}

/** Parses a member of a group from `h generation token ttl limit slots details`. */
export function memberOf(name: string, member: string, remaining: number): LeaseRecord {
  const [, , token, , limit, slots] = member.split(' ', 6)
  return holderOf(name, `${token}/${limit}/${slots} ${detailsAfter(member, 6)}`, remaining)
}

/** Parses a waiter from `w channel arrival round-trip limit units details`. */
export function waiterOf(name: string, waiter: string, remaining: number, position: number): LeaseRecord {
  const [, , , , limit, units] = waiter.split(' ', 6)
  const { owner, note } = read(waiter, 6)
  const record: LeaseRecord = { name, state: 'waiting', owner, note, remaining, position }
  return limit === '1' ? record : { ...record, limit: Number(limit), units: Number(units) }
}

/**
 * Parses the details that follow a number of words. Invalid details, which another program wrote, do not fail the request.
 */
export function read(text: string, words: number): Details {
  try {
    const [owner, note, revision = 0] = JSON.parse(detailsAfter(text, words)) as unknown[]
    return { owner: String(owner), note: String(note), revision: Number(revision) }
  } catch {
    return { owner: '', note: '', revision: 0 }
  }
}

function detailsAfter(text: string, words: number): string {
  let start = 0
  for (let word = 0; word < words; word++) start = text.indexOf(' ', start) + 1
  return text.slice(start)
}
