import { randomBytes } from 'node:crypto'
import { LeaseError } from '../../src/contract/errors.ts'
import { isLease } from '../../src/contract/record.ts'
import type { Busy, Claim, Grant, LeaseRecord, Store } from '../../src/contract/store.ts'
import { requestLimit, roundTripOf, TURN } from '../../src/contract/time.ts'
import { type Asker, positionLifetime } from '../../src/stores/rules/name.ts'
import type { NameState, Waiter } from '../../src/stores/rules/state.ts'
import type { Answer, Leniency } from './allowed.ts'
import type { Demand, History, Request, Step } from './history.ts'
import type { Op } from './op.ts'
import { owed, type Possible, Undecided, type Watching } from './possible.ts'
import { forPeople, States } from './states.ts'
import { apart, type Sent } from './together.ts'
import { LEAST_KEPT } from './written.ts'

/** An engine under test. */
export interface Rig extends Leniency {
  /** Clients of one server. */
  readonly clients: readonly Store[]
  /** Milliseconds: the ttl of leases that end during a history. */
  readonly brief: number
  now(): number
  sleep(ms: number): Promise<void>
  /** Sets the clock back by `ms`. @default nobody can */
  setBack?(ms: number): void
  /** A history was played. Without a decision the machine was too slow, or too much was possible. */
  played?(isDecided: boolean): void
  /** Milliseconds: a wake that takes longer is lost. */
  readonly latestWake: number
}

const LONG = 30_000

/** Milliseconds. A machine that hangs for longer shows nothing: requests reach their limits, and positions their ends. */
const LONGEST_STALL = 1_000

interface Watch {
  isArmed: boolean
  readonly wakes: { readonly at: number; readonly due: number }[]
  stop(): void
}

/** Plays a history over an engine. Resolves to what the rules do not allow, or to `undefined`. */
export async function play(history: History, rig: Rig): Promise<string | undefined> {
  const player = new Player(history.demands, rig)
  try {
    for (const [index, step] of history.steps.entries()) {
      const problem = await player.take(step)
      if (problem) return `step ${index}: ${problem}\n${player.answers.join('\n')}`
    }
    const problem = await player.settle()
    rig.played?.(true)
    return problem && `${problem}\n${player.answers.join('\n')}`
  } catch (error) {
    if (!(error instanceof Undecided)) throw error
    rig.played?.(false)
    return undefined
  } finally {
    await player.end()
  }
}

class Player {
  readonly #rig: Rig
  readonly #claims: readonly Claim[]
  readonly #unwatched = new Set<string>()
  readonly #watches = new Map<string, Watch>()
  readonly #kept = new Set<string>()
  /** By claim: when it asked last, and its last token. */
  readonly #asked = new Map<string, number>()
  readonly #tokens = new Map<string, bigint>()
  readonly #states: States
  /** What was asked and answered, for people. */
  readonly answers: string[] = []

  constructor(demands: readonly Demand[], rig: Rig) {
    this.#rig = rig
    this.#states = new States(rig)
    const name = `differential-${randomBytes(6).toString('hex')}`
    this.#claims = demands.map(({ isBrief, isWatched, ...demand }, index) => {
      const id = randomBytes(16).toString('hex')
      if (!isWatched) this.#unwatched.add(id)
      return { ...demand, name, id, owner: `claim ${index}`, ttl: isBrief ? rig.brief : LONG, note: '' }
    })
  }

  async take(step: Step): Promise<string | undefined> {
    if (step.verb === 'wait') {
      await this.#wait(step.ms)
      return undefined
    }
    if (step.verb === 'hand over') return this.#handOver(step.ms, step.to)
    if (step.verb === 'settle') return this.settle()
    if (step.verb === 'back') return this.#setBack(step.ms)
    if (step.verb === 'follow') return this.#follow()
    if (step.verb === 'together') {
      const idOf = (claim: number): string => this.#claims[claim]?.id ?? ''
      const waits = (claim: number): boolean =>
        this.#states.all.some(({ early }) => early.waiters.some(({ id }) => id === idOf(claim)))
      const queues = (claim: number): boolean => this.#claims[claim]?.queue === true
      const isGone = (claim: number): boolean => this.#states.all.some(({ early }) => early.gone.has(idOf(claim)))
      const requests = apart(this.#rig, step.requests, { waits, queues, isGone })
      return this.#add(await Promise.all(requests.map(each => this.#send(each))))
    }
    if (step.verb !== 'abort') return this.#add([await this.#send(step)])
    const controller = new AbortController()
    if (step.early) controller.abort()
    const sending = this.#send(step.request, controller.signal)
    controller.abort()
    const sent = await sending
    if (step.early) return sent.answer ? 'a request that was given up was answered' : undefined
    return this.#add([sent])
  }

  /** Waits until all waiters that must be woken are, by one of the possible states. */
  async settle(): Promise<string | undefined> {
    const { now, latestWake, precision } = this.#rig
    const isWoken = (id: string, since: number): boolean => {
      const watch = this.#watches.get(id)
      // A waiter that was woken and has not asked since need not be woken again: its store cannot know that it does not ask.
      const from = precision > 0 ? Math.min(this.#asked.get(id) ?? since, since) : since
      return !watch || watch.wakes.some(({ at }) => at >= from - 1)
    }
    for (;;) {
      const at = now()
      const waits = (state: Possible): ReturnType<typeof owed> =>
        owed(state, at, this.#watching).filter(([id, { since }]) => !isWoken(id, since))
      const all = this.#states.all.map(waits)
      if (all.some(({ length }) => length === 0)) {
        // A wake may still be under way, if another state is the right one.
        this.#states.keep(state => waits(state).every(([, { by }]) => at <= by + latestWake))
        return undefined
      }
      if (all.flat().every(([, { by }]) => at > by + latestWake))
        return `no wake reached ${all[0]?.map(([id]) => this.#claims.find(claim => claim.id === id)?.owner).join(', ')}`
      await this.#wait(5)
    }
  }

  /** Times of wakes before and after cannot be compared, so no wake may be outstanding. */
  async #setBack(ms: number): Promise<string | undefined> {
    if (!this.#rig.setBack) return undefined
    const problem = await this.settle()
    this.#rig.setBack(ms)
    this.#states.restart(this.#rig.now())
    return problem
  }

  async end(): Promise<void> {
    for (const { stop } of this.#watches.values()) stop()
    const [client] = this.#rig.clients
    for (const { name, id } of this.#claims)
      await client?.release({ name, id }, AbortSignal.timeout(5_000)).catch(() => {})
  }

  async #wait(ms: number): Promise<void> {
    const { now, sleep } = this.#rig
    const began = now()
    await sleep(ms)
    this.#stalled(now() - began - ms)
  }

  async #handOver(ms: number, to: number): Promise<string | undefined> {
    const numberOf = (id: string): number => this.#claims.findIndex(claim => claim.id === id)
    for (const { id } of this.#states.all[0]?.early.holders ?? []) {
      const problem = this.#add([await this.#send({ verb: 'release', claim: numberOf(id), client: 0 })])
      if (problem) return problem
    }
    await this.#wait(ms)
    const waiter = this.#states.all[0]?.early.waiters[to]
    if (!waiter) return undefined
    const request: Request = { verb: 'acquire', claim: numberOf(waiter.id), client: 0 }
    const sent = await this.#send(request)
    const problem = this.#add([sent])
    if (problem || ms === 0 || (sent.answer?.is as Grant | Busy | undefined)?.held) return problem
    await this.#wait(ms) // since then its process knows that the name is free
    return this.#add([await this.#send(request)])
  }

  async #follow(): Promise<string | undefined> {
    for (const [index, { id }] of this.#claims.entries()) {
      const isDue = this.#watches.get(id)?.wakes.some(({ at, due }) => {
        return at >= (this.#asked.get(id) ?? 0) && due <= this.#rig.now()
      })
      if (!isDue) continue
      const problem = this.#add([await this.#send({ verb: 'acquire', claim: index, client: index % 3 })])
      if (problem) return problem
    }
    return undefined
  }

  #add(requests: readonly Sent[]): string | undefined {
    const problem = this.#states.add(requests)
    const isOpen = ({ id }: Waiter): boolean => this.#watches.has(id) && !this.#kept.has(id)
    if (this.#rig.keepsWatched === 'perhaps')
      this.#states.change(({ late, ...state }) => {
        const waiters = late.waiters.map(each => (isOpen(each) ? { ...each, lapses: Infinity } : each))
        return { ...state, late: { ...late, waiters } }
      })
    return problem
  }

  async #send(request: Request, signal?: AbortSignal): Promise<Sent> {
    const { now, clients } = this.#rig
    const number = 'claim' in request ? (request.claim as number) : 0
    const claim = this.#claims[number] as Claim
    // Each waiter is of one process: what keeps its position and wakes it is the client through which it asks.
    const isWaiter = (request.verb === 'acquire' || request.verb === 'copy') && claim.queue
    const client = (isWaiter ? number : request.client) % clients.length
    const store = clients[client] as Store
    const [op, asked] = this.#opOf(request, claim)
    if (op.verb === 'release') this.#stop(claim.id)
    const sent = now()
    // A waiter that loses its position is woken (R9).
    for (const id of this.#kept) {
      const asked = this.#asked.get(id) ?? sent
      if (this.#watches.get(id)?.wakes.some(({ at }) => at >= asked)) this.#neglect(id, sent - asked, Infinity)
    }
    const watching = this.#watching
    const asking = ask(store, op, asked, signal ?? AbortSignal.timeout(10_000))
    // The store counts the limit from some time before now.
    const until = now() + (op.verb === 'release' || op.verb === 'break' ? 5_000 : requestLimit(asked.ttl))
    try {
      const is = await asking
      this.#stalled(now() - sent)
      const kept = new Set([...watching.kept].filter(id => this.#kept.has(id)))
      const window = { sent, received: now() }
      const answered = { op, window, answer: { is }, watching: { ...watching, kept }, until }
      const { owner, limit, units, queue } = asked
      const what = JSON.stringify(
        [{ ...request, client }, { owner, limit, units, queue }, '->', is ?? 'nothing'],
        forPeople,
      )
      this.answers.push(`${sent.toFixed(1)} to ${answered.window.received.toFixed(1)}: ${what}`)
      if (op.verb === 'acquire') await this.#answered(store, asked, is as Grant | Busy, sent)
      return answered
    } catch (error) {
      const isUnknown = signal?.aborted || (LeaseError.is(error) && error.retryable)
      if (!isUnknown) throw error
      this.#stalled(now() - sent)
      this.answers.push(`${sent.toFixed(1)} to ${now().toFixed(1)}: ${JSON.stringify(request)} -> ${error}`)
      return { op, window: { sent, received: now() }, watching, until }
    }
  }

  #opOf(request: Request, claim: Claim): [Op, Claim] {
    const { id, limit = 1, units = 1 } = claim
    const asker = (copy: Claim): Asker => {
      return { limit, units, ...copy, grace: TURN + roundTripOf(copy.roundTrip) } as Asker
    }
    if (request.verb === 'acquire') return [{ verb: 'acquire', asker: asker(claim) }, claim]
    if (request.verb === 'copy') {
      const copy = { ...claim, limit: request.limit, units: 1 }
      return [{ verb: 'acquire', asker: asker(copy) }, copy]
    }
    // The core renews what it acquired, so with the limit of the lease.
    const held = this.#states.all[0]?.early.holders.find(holder => holder.id === id)
    if (request.verb === 'renew') {
      const renewed = {
        ...claim,
        limit: held?.limit ?? limit,
        ttl: claim.ttl * request.factor,
        token: this.#tokens.get(id),
      }
      return [{ verb: 'renew', id, ttl: renewed.ttl }, renewed]
    }
    if (request.verb === 'annotate')
      return [
        { verb: 'annotate', id, note: request.note },
        { ...claim, limit: held?.limit ?? limit, note: request.note },
      ]
    if (request.verb === 'release') return [{ verb: 'release', id }, claim]
    if (request.verb === 'inspect') return [{ verb: 'inspect' }, claim]
    const token = request.claim === undefined ? undefined : this.#tokens.get(id)
    return [{ verb: 'break', slot: request.slot, token }, claim]
  }

  async #answered(store: Store, claim: Claim, answer: Grant | Busy, sent: number): Promise<void> {
    const { id } = claim
    this.#asked.set(id, sent)
    if (answer.held) {
      this.#tokens.set(id, answer.token)
      this.#stop(id)
    } else if (claim.queue && store.watch && !this.#unwatched.has(id)) {
      if (!this.#watches.has(id)) await this.#watch(store, claim)
      if (answer.kept || this.#rig.keepsWatched === true) this.#kept.add(id)
      else this.#kept.delete(id)
    }
  }

  async #watch(store: Store, claim: Claim): Promise<void> {
    const { now } = this.#rig
    const controller = new AbortController()
    const watch: Watch = { isArmed: false, wakes: [], stop: () => controller.abort() }
    this.#watches.set(claim.id, watch)
    await store.watch?.(claim, (delay = 0) => watch.wakes.push({ at: now(), due: now() + delay }), controller.signal)
    watch.isArmed = true
  }

  /** Nothing asks for waiters while the machine hangs, so positions may have ended. */
  #stalled(ms: number): void {
    if (ms > LONGEST_STALL) throw new Undecided('the machine hung')
    for (const { id, ttl } of this.#claims) if (ms > positionLifetime(ttl) / 3) this.#neglect(id, ms, Infinity)
  }

  #stop(id: string): void {
    this.#watches.get(id)?.stop()
    this.#watches.delete(id)
    this.#neglect(id, 0, this.#rig.latestWake)
  }

  /**
   * Its position, if it was kept, may have ended since `before` ms, and ends within its lifetime and `after` ms. It lasts from
   * the last request of the waiter, whatever its store does; one that was just written need not be written again.
   */
  #neglect(id: string, before: number, after: number): void {
    if (!this.#kept.delete(id)) return
    const { now: read, lasts, precision, keepsFor = LEAST_KEPT } = this.#rig
    const now = read()
    const asked = this.#asked.get(id) ?? Number.NEGATIVE_INFINITY
    const until = (state: NameState, lapses: (lifetime: number) => number): NameState => ({
      ...state,
      waiters: state.waiters.map(each => {
        return each.id === id ? { ...each, lapses: lapses(positionLifetime(each.ttl)) } : each
      }),
    })
    this.#states.change(state => ({
      ...state,
      early: until(state.early, lifetime => Math.max(now - before, asked + lasts(keepsFor * lifetime) - precision)),
      late: until(state.late, lifetime => now + lifetime + after),
    }))
  }

  get #watching(): Watching {
    const armed = [...this.#watches].filter(([, { isArmed }]) => isArmed)
    return { watched: new Set(armed.map(([id]) => id)), kept: new Set(this.#kept) }
  }
}

async function ask(store: Store, op: Op, claim: Claim, signal: AbortSignal): Promise<Answer> {
  const { name, id } = claim
  if (op.verb === 'acquire') return store.acquire(claim, signal)
  if (op.verb === 'renew') return store.renew(claim, signal)
  if (op.verb === 'annotate') return store.annotate(claim, signal)
  if (op.verb === 'release') return store.release({ name, id }, signal)
  if (op.verb === 'break') return store.break(name, { by: 'somebody', slot: op.slot, token: op.token }, signal)
  const records: LeaseRecord[] = []
  for await (const record of store.inspect({ name }, signal)) if (isLease(record)) records.push(record)
  return records
}
