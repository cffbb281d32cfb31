import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
  Wake,
} from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { guarantees } from './guarantees.ts'
import type { Leases } from './leases.ts'
import { Notifications } from './notifications.ts'
import { Requests } from './requests.ts'

export class SqliteStore implements Store {
  readonly kind = 'sqlite'
  readonly guarantees: Guarantees = guarantees
  readonly #notifications: Notifications
  readonly #requests: Requests

  constructor(path: string, allowSharedFolder: boolean, clock: Clock) {
    this.#requests = new Requests(path, allowSharedFolder, clock, () => this.#notifications.check())
    this.#notifications = new Notifications(path, clock, read => this.#requests.tryRead(read))
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#requests.add<Grant | Busy>({
      name: claim.name,
      signal,
      limit: limit(claim.ttl),
      peek: leases => leases.peek(claim),
      write: leases => leases.acquire(claim),
    })
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const write = (leases: Leases): Grant | undefined => leases.renew(claim)
    return this.#requests.add({ name: claim.name, signal, limit: limit(claim.ttl), write })
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const write = (leases: Leases): boolean => leases.annotate(claim)
    return this.#requests.add({ name: claim.name, signal, limit: limit(claim.ttl), write })
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const write = (leases: Leases): 'released' | 'gone' => leases.release(key)
    return this.#requests.add({ name: key.name, signal, limit: LONGEST_REQUEST, write })
  }

  async watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    await this.#read(signal, () => true) // this opens the file
    this.#notifications.add(key, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    if ('name' in query) {
      const { name } = query
      yield* await this.#read(signal, leases => leases.records(name))
      return
    }
    let from: string | undefined = query.prefix
    while (from !== undefined) {
      const start: string = from
      const { records, next } = await this.#read(signal, leases => leases.page(query.prefix, start))
      yield* records
      from = next
    }
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const write = (leases: Leases): bigint | undefined => leases.break(name, parameters)
    return this.#requests.add({ name, signal, limit: LONGEST_REQUEST, write })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#notifications.close()
    this.#requests.close()
  }

  #read<T>(signal: AbortSignal, read: (leases: Leases) => T): Promise<T> {
    return this.#requests.add({ signal, limit: LONGEST_REQUEST, peek: read, write: read })
  }
}

/** A request must also be answered in time, so a tenth of its limit is left for that. */
function limit(ttl: number): number {
  return 0.9 * requestLimit(ttl)
}
