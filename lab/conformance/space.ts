import { randomBytes } from 'node:crypto'
import type { Locks, LocksDefaults } from '../../src/index.ts'
import type { Claim, Store } from '../../src/store.ts'
import { Client } from './client.ts'
import type { Cure, Harness } from './harness.ts'
import { eachOf, until } from './timing.ts'

/** The clients and names of one case. They are released when the case is over. */
export class Space implements AsyncDisposable {
  readonly harness: Harness
  /** Milliseconds: the ttl of a lease that expires during the case. */
  readonly short: number
  /** Milliseconds: the ttl of a lease that must not expire on the slowest machine. */
  readonly long: number
  /** Milliseconds after its ttl within which a waiter must hold the name. */
  readonly latest: number
  readonly #clients: Client[] = []
  readonly #claims: Claim[] = []
  readonly #locks: Locks[] = []
  readonly #cures: Cure[] = []
  /** Milliseconds that the server's clock is ahead, by the jumps of the case. */
  #ahead = 0

  constructor(harness: Harness) {
    this.harness = harness
    const scale = harness.scale ?? 1
    // A request gets a third of it. A small busy machine hangs for 100 ms now and then.
    this.short = Math.round(450 * scale)
    this.long = Math.round(30_000 * scale)
    this.latest = Math.round(1_500 * scale)
  }

  get hasQueue(): boolean {
    return this.harness.lacks?.queue === undefined
  }

  get canBreak(): boolean {
    return this.harness.lacks?.break === undefined
  }

  /** A new client, connected: connecting may take longer than a short ttl allows. */
  async client(): Promise<Client> {
    return this.#connected(await this.harness.open())
  }

  /** Two clients of the same server, like two processes. */
  async pair(): Promise<[Client, Client]> {
    return Promise.all([this.client(), this.client()])
  }

  /** Locks with a client of their own. */
  async locks(defaults: LocksDefaults = {}): Promise<Locks> {
    return this.manage((await this.client()).locks(defaults))
  }

  /** Closes these locks with the case. */
  manage(locks: Locks): Locks {
    this.#locks.push(locks)
    return locks
  }

  /** A client that can be cut off, and how. */
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

  /** Makes the server hang until the cure. */
  async pause(): Promise<Cure> {
    return this.#cured(await needed(this.harness.faults?.pause?.()))
  }

  /** Sets the server's clock forward, or back, until the case is over. */
  async jump(ms: number): Promise<void> {
    await needed(this.harness.faults?.jump?.(ms))
    this.#ahead += ms
  }

  /** A unique name. */
  name(label = 'case'): string {
    return `${label}-${randomBytes(6).toString('hex')}`
  }

  /** A new claim to a new name, with the long ttl and without queueing, unless the parameters say otherwise. */
  claim(parameters: Partial<Claim> = {}): Claim {
    const claim: Claim = {
      name: parameters.name ?? this.name(),
      id: randomBytes(16).toString('hex'),
      owner: `owner-${this.#claims.length}`,
      ttl: this.long,
      note: '',
      queue: false,
      ...parameters,
    }
    this.#claims.push(claim)
    return claim
  }

  /** Undoes everything, whatever fails: other cases use the same server. Rejects with the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    const attempt = (step: () => PromiseLike<void>): Promise<unknown> =>
      Promise.resolve()
        .then(step)
        .catch(error => failures.push(error))
    for (const cure of this.#cures.splice(0)) await attempt(cure)
    if (this.#ahead !== 0) await attempt(() => this.jump(-this.#ahead))
    await Promise.all(this.#locks.map(locks => attempt(() => locks.close({ grace: 0 }))))
    await this.#withdrawAll().catch(() => {}) // their ttl ends them
    await Promise.all(this.#clients.map(({ store }) => attempt(() => store[Symbol.asyncDispose]())))
    if (failures.length > 0) throw failures[0]
  }

  /** To all of several servers: one that connects later has not seen the first requests, and votes for another token. */
  async #connected(store: Store): Promise<Client> {
    const client = new Client(store)
    this.#clients.push(client)
    const isConnected = async (): Promise<boolean> =>
      (await client.records({ name: this.name() })).every(({ state }) => state !== 'unavailable')
    await until(`${this.harness.name} answers`, () => isConnected().catch(() => false))
    return client
  }

  async #withdrawAll(): Promise<void> {
    if (this.#claims.length === 0) return
    const clients = this.harness.lacks?.apart === undefined ? [await this.client()] : this.#clients
    await Promise.all(clients.map(client => eachOf(this.#claims, claim => client.release(claim))))
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
