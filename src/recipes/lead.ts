import { checkSignal } from '../contract/check.ts'
import type { Lease } from '../contract/lease.ts'
import { Campaign, type CampaignOptions, checkCampaign } from './campaign.ts'
import type { Host } from './host.ts'
import { anyOf, leavable } from './rest.ts'

export interface LeadOptions extends CampaignOptions {
  /** Aborts the signal of the term under way, and ends the terms after it. */
  readonly signal?: AbortSignal | undefined
}

/** The terms as they come; see `Locks.lead`. Throws `INVALID_ARGUMENT` at once. */
export function lead(host: Host, name: string, options: LeadOptions): AsyncIterable<Lease> {
  const { signal, ...rest } = options
  checkCampaign('lead', name, options, ['signal'])
  checkSignal(signal)
  const left = new AbortController()
  const stop = anyOf(signal, anyOf(left.signal, host.closing))
  return leavable(terms(new Campaign(host, name, rest, stop)), left)
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
      await term // the name is given back before the loop goes on, or is left
    }
  }
}
