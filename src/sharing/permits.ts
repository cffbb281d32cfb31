import { checkKeys, checkName, checkText, checkWhole, invalid, show } from '../contract/check.ts'
import type { Lease, Permit } from '../contract/lease.ts'
import type { SharedKind } from '../contract/lease-events.ts'
import { LARGEST_LIMIT, MOST_UNITS } from '../contract/store.ts'
import { type Acquirable, Acquiring, type ResultOf } from '../core/acquirable.ts'
import type { Host } from '../core/host.ts'
import type { AcquireTerms } from '../core/options.ts'
import { hasTickets, ticketName } from '../core/tickets.ts'
import type { Holding, NotAcquired } from '../core/work.ts'
import type { PermitOptions, ReadWrite, SemaphoreOptions } from './sharing.ts'

const semaphoreKeys: ReadonlySet<string> = new Set(['limit'])

/** A semaphore; see `Sharing.semaphore`. Throws `INVALID_ARGUMENT`. */
export function semaphore(host: Host, name: string, options: SemaphoreOptions): Acquirable<Permit, PermitOptions> {
  checkName(name)
  if (typeof options !== 'object')
    throw invalid(`semaphore needs an object with its limit, such as { limit: 3 }, not ${show(options)}`)
  checkKeys(options, semaphoreKeys, 'semaphore')
  const { limit } = options
  checkWhole(limit, 'limit', 1, LARGEST_LIMIT)
  if (hasTickets(host.store)) checkText(ticketName(name, limit - 1), `the name of the last ticket of ${show(name)}`)
  return new Permits<Permit>(host, name, 'permit', limit)
}

/** Readers and writers; see `Sharing.readWrite`. Throws `INVALID_ARGUMENT`. */
export function readWrite(host: Host, name: string): ReadWrite {
  checkName(name)
  const { store } = host
  if (hasTickets(store))
    throw invalid(
      `${store.kind} has no readers and writers: it keeps no queue, so readers would starve a writer. ` +
        'Use acquire(name), or one Redis, PostgreSQL, MySQL, etcd, ZooKeeper or SQLite',
    )
  const reader = new Permits<Permit>(host, name, 'reader', LARGEST_LIMIT)
  return { name, reader, writer: new Permits<Lease>(host, name, 'writer') }
}

/** The calls that acquire one name with one limit. A claim with a limit becomes a `Permit`. */
class Permits<L extends Lease> extends Acquiring<L, PermitOptions> {
  readonly #name: string
  readonly #kind: SharedKind
  readonly #limit: number | undefined

  constructor(host: Host, name: string, kind: SharedKind, limit?: number) {
    super(host, kind === 'permit' ? ['permits'] : [])
    this.#name = name
    this.#kind = kind
    this.#limit = limit
  }

  protected hold<R>(terms: AcquireTerms, { permits = 1 }: PermitOptions, resultOf: ResultOf<L, R>): Promise<R> {
    const { store } = this.host
    if (hasTickets(store) && permits !== 1)
      throw invalid(
        `permits must be 1 over ${store.kind}, not ${show(permits)}: it keeps no queue, so calls for one permit ` +
          'would starve a call for several',
      )
    checkWhole(permits, 'permits', 1, Math.min(this.#limit ?? 1, MOST_UNITS))
    const claim = { ...terms, kind: this.#kind, limit: this.#limit, units: permits }
    return this.host.calls.hold(this.#name, claim, held => resultOf(held as unknown as Holding<L> | NotAcquired))
  }
}
