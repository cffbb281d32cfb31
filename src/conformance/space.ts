import { randomBytes } from 'node:crypto'
import type { Claim, Store } from '../contract/store.ts'
import type { Locks } from '../core/locks.ts'
import type { LocksDefaults } from '../core/options.ts'
import { Client } from './client.ts'
import type { Cure, Harness } from './harness.ts'
import { until } from './timing.ts'

/** What one case works with; all of it is given back when the case is over. */
export class Space implements AsyncDisposable {
  readonly harness: Harness
  /** Milliseconds: of a lease that shall run out while the case looks on. */
  readonly short: number
  /** Milliseconds: of a lease that must not run out on the slowest machine. */
  readonly long: number
  /** Milliseconds: how long after its ttl a lease must be had by who waits for it. */
  readonly latest: number
  readonly #clients: Client[] = []
  readonly #claims: Claim[] = []
  readonly #locks: Locks[] = []
  readonly #cures: Cure[] = []

  constructor(harness: Harness) {
    this.harness = harness
    const scale = harness.scale ?? 1
    // A request has a third of it; a small machine with much to do stands still for 100 ms now and then.
    this.short = Math.round(450 * scale)
    this.long = Math.round(30_000 * scale)
    this.latest = Math.round(1_500 * scale)
  }

  get hasLine(): boolean {
    return this.harness.lacks?.line === undefined
  }

  get canBreak(): boolean {
    return this.harness.lacks?.break === undefined
  }

  /** A client of its own, which has been answered once: to connect may take longer than a short ttl leaves. */
  async client(): Promise<Client> {
    return this.#connected(await this.harness.open())
  }

  /** Two clients of the same server, as of two processes. */
  async pair(): Promise<[Client, Client]> {
    return Promise.all([this.client(), this.client()])
  }

  /** Names to hold, through a client of their own. */
  async locks(defaults: LocksDefaults = {}): Promise<Locks> {
    return this.manage((await this.client()).locks(defaults))
  }

  /** These are closed with the case. */
  manage(locks: Locks): Locks {
    this.#locks.push(locks)
    return locks
  }

  /** A client that can be cut off, and the knife. */
  async severable(): Promise<{ client: Client; cut: () => Promise<Cure> }> {
    const severable = await needed(this.harness.faults?.severable?.())
    const client = await this.#connected(severable.store)
    return { client, cut: async () => this.#cured(await severable.cut()) }
  }

  /** A client whose requests can be held back, and how. */
  async delayable(): Promise<{ client: Client; delay: () => Promise<Cure> }> {
    const delayable = await needed(this.harness.faults?.delayable?.())
    const client = await this.#connected(delayable.store)
    return { client, delay: async () => this.#cured(await delayable.delay()) }
  }

  /** Kills the server until the cure. */
  async stop(): Promise<Cure> {
    return this.#cured(await needed(this.harness.faults?.stop?.()))
  }

  /** Makes the server stand still until the cure. */
  async pause(): Promise<Cure> {
    return this.#cured(await needed(this.harness.faults?.pause?.()))
  }

  /** Sets the server's clock forward, or back. */
  async jump(ms: number): Promise<void> {
    await needed(this.harness.faults?.jump?.(ms))
  }

  /** A name that nobody else uses. */
  name(label = 'case'): string {
    return `${label}-${randomBytes(6).toString('hex')}`
  }

  /** A new claim to a new name, or as wished: for the long ttl, and not queueing. */
  claim(wishes: Partial<Claim> = {}): Claim {
    const claim: Claim = {
      name: wishes.name ?? this.name(),
      id: randomBytes(16).toString('hex'),
      owner: `owner-${this.#claims.length}`,
      ttl: this.long,
      note: '',
      queue: false,
      ...wishes,
    }
    this.#claims.push(claim)
    return claim
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cure of this.#cures.splice(0)) await cure()
    await Promise.all(this.#locks.map(locks => locks.close({ grace: 0 })))
    await this.#withdrawAll().catch(() => {}) // the ttl ends them; what matters was seen
    await Promise.all(this.#clients.map(({ store }) => store[Symbol.asyncDispose]()))
  }

  async #connected(store: Store): Promise<Client> {
    const client = new Client(store)
    this.#clients.push(client)
    await until(`${this.harness.name} answers`, () => client.inspect({ name: this.name() }).catch(() => undefined))
    return client
  }

  async #withdrawAll(): Promise<void> {
    if (this.#claims.length === 0) return
    const clients = this.harness.lacks?.apart === undefined ? [await this.client()] : this.#clients
    await Promise.all(clients.flatMap(client => this.#claims.map(claim => client.release(claim))))
  }

  #cured(cure: Cure): Cure {
    let cured = false
    const once = async (): Promise<void> => {
      if (cured) return
      cured = true
      await cure()
    }
    this.#cures.push(once)
    return once
  }
}

function needed<T>(fault: Promise<T> | undefined): Promise<T> {
  if (!fault) throw new TypeError('a case uses a fault that it does not say it needs')
  return fault
}
