import { checkSignal } from '../contract/check.ts'
import type { Lease } from '../contract/lease.ts'
import type { Host } from '../core/host.ts'
import { Campaign, type CampaignOptions, checkCampaign } from './campaign.ts'
import { anyOf, interruptible } from './interruptible.ts'

/** The options of `locks.lead`. */
export interface LeadOptions extends CampaignOptions {
  /** Ends the loop. Aborts the signal of the term in progress. */
  readonly signal?: AbortSignal | undefined
}

/** Yields a lease for each term; see `Locks.lead`. Throws `INVALID_ARGUMENT` at once. */
export function lead(host: Host, name: string, options: LeadOptions): AsyncIterable<Lease> {
  const { signal, ...rest } = options
  checkCampaign('lead', name, options, ['signal'])
  checkSignal(signal)
  const left = new AbortController()
  const stop = anyOf(signal, anyOf(left.signal, host.closing))
  return interruptible(terms(new Campaign(host, name, rest, stop)), left)
}

async function* terms(campaign: Campaign): AsyncGenerator<Lease, void, undefined> {
  for (;;) {
    const begun = Promise.withResolvers<Lease>()
    const ended = Promise.withResolvers<void>()
    const body = (lease: Lease): Promise<void> => {
      begun.resolve(lease)
      return ended.promise
    }
    const term = campaign.term(body)
    const first = await Promise.race([begun.promise, term])
    if (first === false) return
    if (first === true) continue
    try {
      yield first
    } finally {
      ended.resolve()
      await term // the name is released before the loop continues or ends
    }
  }
}
