import type { Busy, Claim, ClaimKey, Grant, Store } from '../../src/store.ts'
import type { Details, Recorder } from '../judge/history.ts'

/** A client that records the requests to its store. */
export interface Sender {
  readonly client: number
  readonly history: Pick<Recorder, 'write'>
  /** The next number of a request, unique in the run. */
  readonly next: () => number
}

type Sent = Omit<Details['requested'], 'client' | 'name' | 'claim' | 'request'>

/** Records what the core asks this store, and what the store answers. */
export function recordRequests(store: Store, { client, history, next }: Sender): void {
  async function record<Answer extends Grant | Busy | 'released' | 'gone' | undefined>(
    { name, id: claim }: ClaimKey,
    sent: Sent,
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const request = next()
    history.write('requested', { client, name, claim, request, ...sent })
    const answer = await ask()
    history.write('answered', { request, ...shown(answer) })
    return answer
  }
  const { acquire, renew, release } = store
  store.acquire = (claim, signal) =>
    record(claim, { verb: 'acquire', ...termsOf(claim) }, () => acquire.call(store, claim, signal))
  store.renew = (claim, signal) =>
    record(claim, { verb: 'renew', ...termsOf(claim) }, () => renew.call(store, claim, signal))
  store.release = (key, signal) => record(key, { verb: 'release' }, () => release.call(store, key, signal))
}

function termsOf({ ttl, limit = 1, units = 1 }: Claim): Pick<Sent, 'ttl' | 'limit' | 'units'> {
  return { ttl, limit, units }
}

function shown(answer: Grant | Busy | 'released' | 'gone' | undefined): Omit<Details['answered'], 'request'> {
  if (answer === undefined) return { is: 'gone' }
  if (typeof answer === 'string') return { is: answer }
  if (!answer.held) return { is: 'busy' }
  const { token, ttl, slots = [0] } = answer
  return { is: 'held', token: token.toString(), ttl, slots }
}
