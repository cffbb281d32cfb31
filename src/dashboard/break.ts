import { LeaseError, messageOf } from '../contract/errors.ts'
import { isShared, slotsText } from '../contract/record.ts'
import { titleOf } from '../contract/reserved.ts'
import type { Locks } from '../create-locks.ts'

/** The request that the page sends. */
export interface BreakRequest {
  readonly name: string
  /** The typed text, which must be the name as the page shows it. */
  readonly typed: string
  /** The token of the lease that was shown, or `all TOKEN` with the highest token of those that were shown. */
  readonly of: string
}

/** Breaks only what was shown: who acquires later has a higher token. Resolves as `break`, to the highest token of all. */
export async function breakOf(
  locks: Pick<Locks, 'inspect' | 'break'>,
  name: string,
  of: string,
): Promise<bigint | undefined> {
  const highest = BigInt(of.replace('all ', ''))
  if (!of.startsWith('all ')) return locks.break(name, { token: highest })
  const { holders } = await locks.inspect(name)
  const shown = holders.flatMap(({ token }) => (token !== undefined && token <= highest ? [token] : []))
  const answers = await Promise.all(shown.map(token => locks.break(name, { token })))
  return answers.reduce((most, token) => ((token ?? 0n) > (most ?? 0n) ? token : most), undefined)
}

/** Breaks only what the page showed. Resolves to the status and JSON of the answer. */
export async function breakShown(
  locks: Pick<Locks, 'inspect' | 'break'>,
  { name, typed, of }: BreakRequest,
): Promise<readonly [status: number, answer: Record<string, string>]> {
  const title = titleOf(name)
  if (typed !== title) return [400, { error: `Not broken: type ${title} exactly` }]
  try {
    if (!/^(all )?\d{1,20}$/.test(of)) return await refused(locks, name)
    const token = await breakOf(locks, name, of)
    if (token !== undefined) return [200, { token: `${token}` }]
    return [409, { error: 'Not broken: nobody who was shown still holds it' }]
  } catch (error) {
    const isInvalid = LeaseError.is(error) && error.code === 'INVALID_ARGUMENT'
    return [isInvalid ? 400 : 502, { error: failedText(title, error) }]
  }
}

/** The text after a break that failed. A request that was sent may still be carried out. */
export function failedText(title: string, error: unknown): string {
  const isUnknown = LeaseError.is(error, 'OUTCOME_UNKNOWN')
  return `${title} ${isUnknown ? 'may have been' : 'was not'} broken: ${messageOf(error)}`
}

/** The answer if the request does not name the intended lease. */
async function refused(
  locks: Pick<Locks, 'inspect'>,
  name: string,
): Promise<readonly [status: number, answer: Record<string, string>]> {
  const title = titleOf(name)
  const { holders } = await locks.inspect(name)
  if (holders.length === 0) return [409, { error: `${title} is free` }]
  if (!isShared(holders)) return [400, { error: `Not broken: the token of the holder of ${title} is missing` }]
  const slots = holders.flatMap(holder => holder.slots ?? [0]).sort((a, b) => a - b)
  return [400, { error: `${title} is shared, and held in ${slotsText(slots)}: choose one lease, or all` }]
}
