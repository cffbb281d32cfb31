import assert from 'node:assert/strict'
import { createLocks, LeaseError, type Locks, type LocksDefaults } from '../../src/index.ts'
import type { Busy, Claim, ClaimKey, Grant, LeaseRecord, NodeRecord, Query, Store, Wake } from '../../src/store.ts'
import { sleep, TooSlow, within } from './timing.ts'

/** A watch of a case. */
export interface Watch {
  /** The number of wakes without a delay. */
  readonly wakes: number
  /** The delays of the other wakes, in milliseconds. */
  readonly delays: readonly number[]
  stop(): void
}

/** Milliseconds. Requests of a shorter ttl have little time, so a failed one is sent again, as the core does. */
const BRIEF = 3_000

/** The tokens of all claims, by their ids. A renewal has the token of its claim, as the core sends it. */
const granted = new Map<string, bigint>()

/** When the last lease of each name may end at the earliest, by `performance.now()`. */
const ends = new Map<string, number>()

/** Puts requests to one store directly. Every answer must come within 10 s. */
export class Client {
  readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  async acquire(claim: Claim): Promise<Grant | Busy> {
    const sent = performance.now()
    const answer = await asked(claim, `acquire ${claim.name}`, signal => this.store.acquire(claim, signal))
    if (answer.held) {
      granted.set(claim.id, answer.token)
      ends.set(claim.name, sent + claim.ttl)
    }
    return answer
  }

  /** Acquires a name that must be free. */
  async hold(claim: Claim): Promise<Grant> {
    const answer = await this.acquire(claim)
    if (!answer.held) assert.fail(`${claim.owner} should hold ${claim.name}, but it is held by ${who(answer)}`)
    return answer
  }

  /** Tries to acquire a name that must be busy. Throws `TooSlow` if it is granted because the lease before has ended. */
  async isRefused(claim: Claim): Promise<Busy> {
    const end = ends.get(claim.name) ?? Number.POSITIVE_INFINITY
    const answer = await this.acquire(claim)
    if (answer.held && performance.now() >= end)
      throw new TooSlow(`the lease of ${claim.name} ended before the next try`)
    if (answer.held) assert.fail(`${claim.owner} holds ${claim.name} and should not`)
    return answer
  }

  async renew(claim: Claim): Promise<Grant | undefined> {
    const held = { token: granted.get(claim.id), ...claim }
    const sent = performance.now()
    const grant = await asked(claim, `renew ${claim.name}`, signal => this.store.renew(held, signal))
    if (grant) ends.set(claim.name, sent + claim.ttl)
    return grant
  }

  annotate(claim: Claim): Promise<boolean> {
    return asked(claim, `annotate ${claim.name}`, signal => this.store.annotate(claim, signal))
  }

  release({ name, id }: ClaimKey): Promise<'released' | 'gone'> {
    return within(`release ${name}`, signal => this.store.release({ name, id }, signal))
  }

  async watch(claim: Claim): Promise<Watch> {
    const controller = new AbortController()
    const watch = { wakes: 0, delays: [] as number[], stop: () => controller.abort() }
    const wake: Wake = (delay = 0) => {
      if (delay > 0) watch.delays.push(delay)
      else watch.wakes += 1
    }
    await within(`watch ${claim.name}`, async () => this.store.watch?.(claim, wake, controller.signal))
    return watch
  }

  async inspect(query: Query): Promise<LeaseRecord[]> {
    return (await this.records(query)).filter(record => 'owner' in record)
  }

  /** What it shows, with the states of its servers. */
  records(query: Query): Promise<(LeaseRecord | NodeRecord)[]> {
    return within('inspect', async signal => {
      const records: (LeaseRecord | NodeRecord)[] = []
      for await (const record of this.store.inspect(query, signal)) records.push(record)
      return records
    })
  }

  break(name: string, token?: bigint, slot?: number): Promise<bigint | undefined> {
    return within(`break ${name}`, signal => this.store.break(name, { by: 'an administrator', token, slot }, signal))
  }

  locks(defaults: LocksDefaults = {}): Locks {
    return createLocks(this.store, defaults)
  }
}

function asked<Answer>({ ttl }: Claim, what: string, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
  return within(what, async signal => {
    for (;;) {
      try {
        return await ask(signal)
      } catch (error) {
        if (ttl >= BRIEF || signal.aborted || !LeaseError.is(error) || !error.retryable) throw error
        await sleep(5)
      }
    }
  })
}

function who({ holder, ahead }: Busy): string {
  return holder ? `${holder.owner} (token ${holder.token})` : `nobody, and ${ahead ?? 'perhaps some'} wait before it`
}
