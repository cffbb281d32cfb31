import { resolve } from 'node:path'
import { LeaseError } from '../../contract/errors.ts'
import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit, systemClock } from '../../contract/time.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import type { Leases } from './leases.ts'
import { Requests } from './requests.ts'
import { Wakes } from './wakes.ts'

export interface SqliteOptions extends ShortestTtl {
  /** @default the clocks of this process; all processes must agree on `wall()` */
  readonly clock?: Clock
}

const guarantees: Guarantees = {
  scope: 'machine',
  exclusion:
    'always, unless the wall clock steps forward by more than remains of a lease while its holder is stopped or busy, ' +
    'or the file is deleted or replaced while in use',
  token:
    'one counter for the file, never below the wall clock in microseconds, so that it rises also when the file was ' +
    'deleted, unless the clock went back meanwhile',
  order: 'first come, first served',
  waiting: 'pushed',
  shortestTtl: 200,
  clock: 'the wall clock of the machine',
  durability: 'every grant, renewal and release is synced to the disk (WAL, synchronous=FULL) before it is answered',
  limits: [
    'Other machines do not share it: a file on a network file system is refused where it can be told.',
    'A transaction runs in the main thread: a disk that stalls blocks the event loop, heartbeats included.',
    'A process stopped in the middle of a transaction keeps all others from the file until it runs on or ends.',
    'A release by another process is noticed after 2 ms, or after 75 where the system tells nothing of changed files.',
    'The file must not be opened in the same process by another copy of SQLite, such as that of better-sqlite3.',
  ],
}

/**
 * A store in one file, for all processes of one machine, over Node's own SQLite. The file is made when it is first
 * used; its folder must exist. A transaction blocks the event loop for as long as the disk takes to sync.
 * @throws LeaseError INVALID_ARGUMENT for a path that is no path; what is wrong with the file is thrown by each use
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw new LeaseError('INVALID_ARGUMENT', 'sqlite() needs the path of a file, such as /var/lib/app/leases.db')
  if (path === ':memory:')
    throw new LeaseError('INVALID_ARGUMENT', 'sqlite(":memory:") would share with nobody: use memory(), or give a path')
  return withShortestTtl(new SqliteStore(resolve(path), options.clock ?? systemClock()), options.shortestTtl)
}

class SqliteStore implements Store {
  readonly kind = 'sqlite'
  readonly guarantees: Guarantees = guarantees
  readonly #wakes: Wakes
  readonly #requests: Requests

  constructor(path: string, clock: Clock) {
    this.#requests = new Requests(path, clock, () => this.#wakes.check())
    this.#wakes = new Wakes(path, clock, read => this.#requests.look(read))
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#requests.add<Grant | Busy>({
      name: claim.name,
      signal,
      limit: limit(claim.ttl),
      peek: (leases, now) => leases.peek(claim, now),
      write: (leases, now) => leases.acquire(claim, now),
    })
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const write = (leases: Leases, now: number): Grant | undefined => leases.renew(claim, now)
    return this.#requests.add({ name: claim.name, signal, limit: limit(claim.ttl), write })
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const write = (leases: Leases, now: number): boolean => leases.annotate(claim, now)
    return this.#requests.add({ name: claim.name, signal, limit: limit(claim.ttl), write })
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const write = (leases: Leases, now: number): 'released' | 'gone' => leases.release(key, now)
    return this.#requests.add({ name: key.name, signal, limit: LONGEST_REQUEST, write })
  }

  async watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    await this.#read(signal, () => true) // opens the file
    this.#wakes.add(key, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    if ('name' in query) {
      const { name } = query
      yield* await this.#read(signal, (leases, now) => leases.records(name, now))
      return
    }
    let from: string | undefined = query.prefix
    while (from !== undefined) {
      const start: string = from
      const { records, next } = await this.#read(signal, (leases, now) => leases.page(query.prefix, start, now))
      yield* records
      from = next
    }
  }

  break(name: string, _by: string, signal: AbortSignal): Promise<bigint | undefined> {
    const write = (leases: Leases, now: number): bigint | undefined => leases.break(name, now)
    return this.#requests.add({ name, signal, limit: LONGEST_REQUEST, write })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#wakes.close()
    this.#requests.close()
  }

  #read<T>(signal: AbortSignal, read: (leases: Leases, now: number) => T): Promise<T> {
    return this.#requests.add({ signal, limit: LONGEST_REQUEST, peek: read, write: read })
  }
}

/** A request must not only begin in time but be answered in time: a tenth is left for that. */
function limit(ttl: number): number {
  return 0.9 * requestLimit(ttl)
}
