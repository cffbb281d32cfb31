import { LARGEST_LIMIT, MOST_UNITS } from '../contract/store.ts'
import type { Shown } from './mark.ts'

// What a holder presents, as text, in a header and in the environment of a command: `33`, or `33/5:0+2` for a permit of
// limit 5 in the slots 0 and 2. The text has no comma, because a comma joins repeated headers.

const TEXT = /^(0|[1-9]\d{0,18})(?:\/([1-9]\d{0,9}):(\d{1,10}(?:\+\d{1,10})*))?$/

/** The text for a token with the slots of its permit. */
export function writeToken({ token, limit = 1, slots = [] }: Omit<Shown, 'epoch'>): string {
  return limit === 1 ? String(token) : `${token}/${limit}:${slots.join('+')}`
}

/** Parses that text. Returns `undefined` for any other text. */
export function parseToken(text: string): Omit<Shown, 'epoch'> | undefined {
  const [, token, limit, slots] = TEXT.exec(text) ?? []
  if (token === undefined || BigInt(token) >= 2n ** 63n) return undefined
  if (limit === undefined || slots === undefined) return { token: BigInt(token) }
  const permit = { limit: Number(limit), slots: slots.split('+').map(Number) }
  return areSlots(permit) ? { token: BigInt(token), ...permit } : undefined
}

/** Are these the limit and the slots of a permit or a reader? */
export function areSlots({ limit, slots }: Pick<Shown, 'limit' | 'slots'>): boolean {
  if (!Array.isArray(slots) || slots.length === 0 || slots.length > MOST_UNITS) return false
  if (!isWithin(limit, 1, LARGEST_LIMIT)) return false
  return slots.every((slot, index) => isWithin(slot, (slots[index - 1] ?? -1) + 1, Number(limit) - 1))
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}
