import { checkKeys, checkName, invalid, show } from '../../contract/check.ts'
import type { LeaseError } from '../../contract/errors.ts'
import { LONGEST_SHARED } from '../../contract/reserved.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { Held } from '../../core/work.ts'
import { type Acquirable, Acquiring } from './acquirable.ts'
import { Call } from './call.ts'
import type { Demand } from './demand.ts'
import type { SharingHost } from './host.ts'
import type { Permit } from './permit.ts'
import type { PermitOptions, ReadWrite, SemaphoreOptions } from './sharing.ts'

/** The most permits of a name, and the number of readers: a call that waits stands in the queue of every slot. */
const MOST_SLOTS = 16

const semaphoreKeys: ReadonlySet<string> = new Set(['limit'])

/** A semaphore; see `Sharing.semaphore`. Throws `INVALID_ARGUMENT`. */
export function semaphore(
  host: SharingHost,
  name: string,
  options: SemaphoreOptions,
): Acquirable<Permit, PermitOptions> {
  checkSharedName(name)
  if (typeof options !== 'object')
    throw invalid(`semaphore needs an object with its limit, such as { limit: 3 }, not ${show(options)}`)
  checkKeys(options, semaphoreKeys, 'semaphore')
  const { limit } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_SLOTS)
    throw invalid(
      `limit must be a whole number from 1 to ${MOST_SLOTS}, not ${show(limit)}` +
        (limit > MOST_SLOTS ? ': a call that waits queues for each. Use several names' : ''),
    )
  return new Permits(host, { name, kind: 'permit', slots: range(0, limit) })
}

/** Readers and writers; see `Sharing.readWrite`. Throws `INVALID_ARGUMENT`. */
export function readWrite(host: SharingHost, name: string): ReadWrite {
  checkSharedName(name)
  const readers = range(1, MOST_SLOTS)
  const all = [0, ...readers]
  return {
    name,
    reader: new Permits(host, { name, kind: 'reader', slots: readers }, 1),
    writer: new Permits(host, { name, kind: 'writer', slots: all }, all.length),
  }
}

/** Some slots of a name, of which each call acquires one or several. */
class Permits extends Acquiring<Permit, PermitOptions> {
  readonly #demand: Omit<Demand, 'want'>
  readonly #want: number | undefined

  /** `want`: slots that each call acquires; without it, its option `permits` says so. */
  constructor(host: SharingHost, demand: Omit<Demand, 'want'>, want?: number) {
    super(host, want ? [] : ['permits'])
    this.#demand = demand
    this.#want = want
  }

  protected override async hold(terms: AcquireTerms, { permits }: PermitOptions): Promise<Held<Permit> | LeaseError> {
    const want = this.#want ?? permitsOf(permits, this.#demand.slots.length)
    return new Call(this.host, { ...this.#demand, want }, terms).run()
  }
}

/** A name whose slots have names that every store accepts. */
function checkSharedName(name: unknown): asserts name is string {
  checkName(name)
  const bytes = Buffer.byteLength(name)
  if (bytes > LONGEST_SHARED)
    throw invalid(
      `a shared name has at most ${LONGEST_SHARED} bytes of UTF-8, not ${bytes}: its slots have longer names`,
    )
}

function permitsOf(permits: unknown = 1, limit: number): number {
  if (Number.isInteger(permits) && (permits as number) >= 1 && (permits as number) <= limit) return permits as number
  throw invalid(`permits must be a whole number from 1 to the limit of ${limit}, not ${show(permits)}`)
}

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}
