import { LeaseError } from '../contract/errors.ts'
import { type Entry, List } from '../contract/list.ts'
import { type Cancel, pause, within } from '../contract/request.ts'
import { type Clock, LAST_WITHDRAWAL } from '../contract/time.ts'
import { warn } from '../contract/warnings.ts'
import type { Family } from './family.ts'
import type { HeldLease } from './held-lease.ts'
import type { OwnLeases } from './self-wait.ts'

/** Milliseconds between checks for self-waits. One timer serves all calls: 10,000 timers take 0.6 % of a processor. */
const CHECK_EVERY = 2_000

/** Milliseconds that `close` waits for leases before it names them, unless it gives up sooner. */
const PATIENCE = 1_000

/** The leases that one `Locks` holds. */
type Leases = List<HeldLease>

/** The leases of every `Locks` of this process. A module that is loaded again may wait for a lease of its old `Locks`. */
const allLeases = new Set<WeakRef<Leases>>()
const forgotten = new FinalizationRegistry<WeakRef<Leases>>(leases => allLeases.delete(leases))
const closed = new WeakSet<Leases>()

/** An acquire in progress. */
export interface Call {
  readonly cancel: Cancel
  readonly acquiring: Promise<unknown>
  /** Only for a call that acquires one name. */
  readonly acquisition?: { check(now: number, leases: OwnLeases): void }
}

/** What one `Locks` has in progress, and how `close()` ends it. */
export class Closing {
  readonly calls: List<Call> = new List()
  readonly #clock: Clock
  readonly #leases: List<HeldLease>
  readonly #family: Pick<Family, 'leases' | 'isHolding'>
  readonly #all: Set<WeakRef<Leases>>
  readonly #withdrawals = new List<Promise<unknown>>()
  /** Bodies of `using` that run, also those whose lease is lost. */
  #bodies = 0
  #onIdle: (() => void) | undefined
  #closed: Promise<void> | undefined
  #stopWatching: (() => void) | undefined
  readonly #controller = new AbortController()

  /** `isSimulated`: each `Locks` of this process stands for a process of its own. */
  constructor(
    clock: Clock,
    leases: List<HeldLease>,
    family: Pick<Family, 'leases' | 'isHolding'>,
    isSimulated = false,
  ) {
    this.#clock = clock
    this.#leases = leases
    this.#family = family
    const weak = new WeakRef(leases)
    this.#all = isSimulated ? new Set() : allLeases
    this.#all.add(weak)
    if (isSimulated) return
    forgotten.register(leases, weak)
    if (!process.listeners('beforeExit').includes(nameHeld)) process.on('beforeExit', nameHeld)
  }

  /** Aborts with `CLOSED` when `close` begins. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  assertOpen(): void {
    if (this.#closed) throw new LeaseError('CLOSED', 'these locks were closed: make new ones with createLocks')
  }

  beginBody(): void {
    this.#bodies += 1
  }

  endBody(): void {
    this.#bodies -= 1
    this.checkIdle()
  }

  /** Called when a call begins to wait: starts the timer that finds self-waits if there can be one, unless it runs. */
  watch(): void {
    if (this.#stopWatching || this.calls.size === 0) return
    if (this.#family.isHolding || [...this.#all].some(leases => leases.deref()?.size))
      this.#stopWatching = this.#clock.after(CHECK_EVERY, () => this.#findSelfWaits(), true)
  }

  endCall(call: Entry<Call>): void {
    this.calls.remove(call)
    this.watch() // another call may wait for the lease of this one
    if (this.calls.size > 0) return
    this.#stopWatching?.()
    this.#stopWatching = undefined
  }

  /** Called when no lease is held, or a body ends. */
  checkIdle(): void {
    if (this.#leases.size === 0 && this.#bodies === 0) this.#onIdle?.()
  }

  /** `close` waits for this withdrawal, which never rejects. */
  inBackground(withdrawal: Promise<unknown>): void {
    const entry = this.#withdrawals.add(withdrawal)
    void withdrawal.then(() => this.#withdrawals.remove(entry))
  }

  /** Ends everything, then calls `dispose`. The first call decides; later ones return its promise. */
  close(grace: number, release: boolean, dispose: () => Promise<void>): Promise<void> {
    if (!this.#closed) {
      const { promise, resolve } = Promise.withResolvers<void>()
      closed.add(this.#leases)
      this.#closed = promise // before any signal aborts: a listener may acquire, or close as well
      resolve(this.#end(grace, release).then(dispose))
    }
    return this.#closed
  }

  #findSelfWaits(): void {
    this.#stopWatching = undefined
    this.watch()
    const now = this.#clock.now()
    const here = new Map(this.#family.leases().map(lease => [lease.name, lease]))
    const everywhere = [...this.#all].flatMap(leases => leases.deref()?.values() ?? [])
    const all = Map.groupBy(everywhere, lease => lease.name)
    for (const { acquisition } of this.calls.values()) acquisition?.check(now, { here, all })
  }

  async #end(grace: number, release: boolean): Promise<void> {
    const closed = new LeaseError('CLOSED', 'these locks were closed while this call waited: await it before close')
    this.#controller.abort(closed)
    for (const { cancel } of this.calls.values()) cancel.cancel(closed)
    for (const lease of this.#leases.values()) lease.abort(closedWhileHeld(lease.name))
    if (release) for (const lease of this.#handedOut()) void lease.release()
    const arm = (wake: () => void): void => {
      this.#onIdle = wake
    }
    const stopNaming = grace > PATIENCE ? this.#clock.after(PATIENCE, () => this.#nameForgotten(), true) : undefined
    if (this.#leases.size > 0 || this.#bodies > 0) await pause(this.#clock, grace, { arm })
    stopNaming?.()
    if (grace > 0) this.#nameForgotten() // 0: the caller does not wait for leases
    for (const lease of this.#leases.values()) lease.stopRenewing()
    const withdrawn = async (): Promise<void> => {
      // Wait for the calls first: each leaves its withdrawal in the background.
      await Promise.allSettled(this.calls.values().map(({ acquiring }) => acquiring))
      await Promise.all(this.#withdrawals.values())
    }
    await within(this.#clock, LAST_WITHDRAWAL, withdrawn(), () => {})
  }

  #handedOut(): HeldLease[] {
    return this.#leases.values().filter(lease => lease.isHandedOut)
  }

  #nameForgotten(): void {
    for (const { name } of this.#handedOut()) {
      const what = `close() found the lease ${JSON.stringify(name)}, which was acquired and not released`
      warn('HOLDFAST_NOT_RELEASED', `${what}: call release() first, or close({ release: true })`, name)
    }
  }
}

/** Names the held leases. Called when the event loop is empty, such as in a program whose promise will never settle. */
function nameHeld(): void {
  for (const weak of allLeases) {
    const leases = weak.deref()
    if (!leases || closed.has(leases)) continue
    for (const { name, runsOut } of leases.values()) {
      if (runsOut) continue
      const what = `this process ends while it holds the lease ${JSON.stringify(name)}: nothing else keeps it alive`
      warn(
        'HOLDFAST_LOOP_EMPTY',
        `${what}, and a lease does not. Run the work in locks.using, or release() first`,
        name,
      )
    }
  }
}

/** Makes the `CLOSED` error. It names the lease, because a call that nobody awaits rejects with it. */
function closedWhileHeld(name: string): LeaseError {
  return new LeaseError('CLOSED', `these locks were closed while ${JSON.stringify(name)} was held`, { leaseName: name })
}
