import { LeaseError } from '../../contract/errors.ts'
import { backoff, type Pauses } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import { KnownName, type Lost } from './known-name.ts'
import type { RangeAnswer } from './messages.ts'
import type { Parts } from './parts.ts'
import { byRevision } from './view.ts'
import { openWatch, type Watch } from './watch.ts'

/** The pauses in milliseconds before a watch is opened again. */
const PAUSES: Pauses = [50, 2_000]

/** Milliseconds by which a watch may lag behind an answer of the server. If it lags longer, it must have missed events. */
const LONGEST_LAG = 1_000

/** A name that a watch follows. The watch is opened again when it ends. It is a hint: only the server grants. */
export class FollowedName {
  readonly known: KnownName
  readonly #name: string
  readonly #parts: Parts
  readonly #onChange: (lost: readonly Lost[]) => void
  #opening: Promise<void> | undefined
  /** The watch, while it is open. */
  #watch: Watch | undefined
  #again: NodeJS.Timeout | undefined
  #isOver = false

  /** `onChange` is called when something changed, and when the watch is open. `lost`: the positions that ended. */
  constructor(name: string, parts: Parts, onChange: (lost: readonly Lost[]) => void) {
    this.#name = name
    this.#parts = parts
    this.#onChange = onChange
    this.known = new KnownName(parts.keys, parts.clock)
  }

  /** Is the watch open, so that `known` is what it has reported? */
  get isReady(): boolean {
    return this.#watch !== undefined
  }

  /** Opens the watch. Resolves once it is open. `read`: all keys of the name. */
  open(read?: Pick<RangeAnswer, 'header' | 'kvs'>): Promise<void> {
    if (this.#opening) return this.#opening
    const opening = inRootContext(() => this.#open(read)).catch(error => {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    })
    this.#opening = opening
    return opening
  }

  /** Does what the watch has reported agree with the server now? A watch that keeps lagging is replaced. */
  async agrees(limit: number): Promise<boolean> {
    if (!this.isReady) return false
    const { count, written } = await this.#parts.requests.extent(this.#name, limit)
    if (count === this.known.size && written <= this.known.revision) return true
    const before = this.known.revision
    const look = (): void => {
      if (this.isReady && this.known.revision === before) this.#lose()
    }
    setTimeout(look, LONGEST_LAG).unref()
    return false
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#again)
    this.#watch?.end()
    this.#watch = undefined
  }

  async #open(read: Pick<RangeAnswer, 'header' | 'kvs'> | undefined): Promise<void> {
    const { gateway, keys } = this.#parts
    const range = keys.all(this.#name)
    const { header, kvs = [] } = read ?? (await gateway.range(range))
    this.#onChange(this.known.load(kvs.toSorted(byRevision), BigInt(header.revision)))
    const request = { ...range, start_revision: String(this.known.revision + 1n) }
    const watch = await openWatch(gateway, request, {
      onEvents: (events, revision) => this.#onChange(this.known.apply(events, revision)),
      onEnd: () => this.isReady && this.#lose(),
    })
    if (watch.isOver()) throw new LeaseError('OUTCOME_UNKNOWN', 'the watch ended as it began')
    if (this.#isOver) return watch.end()
    this.#watch = watch
    this.#onChange([])
  }

  /** Events were lost: opens the watch again, and reads everything again. */
  #lose(): void {
    this.#watch?.end()
    this.#watch = undefined
    this.#opening = undefined
    this.#openAgain(1)
  }

  #openAgain(failures: number): void {
    const again = (): void => {
      if (this.#isOver || this.#parts.gateway.isClosed) return
      this.open().catch(() => this.#openAgain(failures + 1))
    }
    clearTimeout(this.#again)
    this.#again = setTimeout(again, backoff(failures, Math.random, PAUSES)).unref()
  }
}
