import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { between, pick, seeded } from '../../lab/faults/random.ts'
import type { Details, Event, Kind } from '../../lab/judge/history.ts'
import { answers } from '../../lab/judge/promises/answers.ts'
import { trace } from '../../lab/judge/trace.ts'
import { recordRequests } from '../../lab/run/requests.ts'
import { LeaseError } from '../../src/contract/errors.ts'
import type { Claim, Store } from '../../src/contract/store.ts'
import type { StoreHarness } from '../harnesses/harness.ts'
import { type History, histories, type Request, type Step } from './history.ts'

/** Milliseconds after which a client gives a request up. Its outcome is then unknown. */
const PATIENCE = 2_000

const STEPS = 40
const LONG = 5_000

/** Three clients of one server: one that is undisturbed, one that is cut off at times, and one whose requests are late. */
export interface Disturbed {
  readonly clients: readonly Store[]
  readonly brief: number
  /** Ends the faults, and closes the clients. */
  end(): Promise<void>
}

/** Opens the clients, and injects faults that excuse no wrong answer: of the network, and pauses of the server. */
export async function disturb({ open, faults = {}, scale = 1 }: StoreHarness, seed: number): Promise<Disturbed> {
  const [plain, cut, late] = await Promise.all([open(), faults.severable?.(), faults.delayable?.()])
  const clients = [plain, cut?.store ?? (await open()), late?.store ?? (await open())]
  const random = seeded(seed)
  const possible = [cut && (() => cut.cut()), late && (() => late.delay()), faults.pause && (() => faults.pause?.())]
  const known = possible.filter(each => each !== undefined)
  const stop = new AbortController()
  const disturbing = (async (): Promise<void> => {
    while (known.length > 0 && !stop.signal.aborted) {
      await pause(between(random, 100, 600), undefined, { signal: stop.signal }).catch(() => {})
      const cure = await pick(random, known)()
      await pause(between(random, 20, 400))
      await cure?.()
    }
  })()
  return {
    clients,
    brief: Math.round(450 * scale),
    async end() {
      stop.abort()
      await disturbing
      await Promise.all(clients.map(client => client[Symbol.asyncDispose]()))
    },
  }
}

/** Plays the random history of this seed. Resolves to the answers that the rules of a name do not allow, or `undefined`. */
export async function fuzz({ clients, brief }: Disturbed, seed: number): Promise<string | undefined> {
  const [history] = fc.sample(histories(brief, STEPS), { seed, numRuns: 1 }) as [History]
  const events: Event[] = []
  const began = performance.now()
  const log = <K extends Kind>(kind: K, details: Details[K]): void => {
    events.push({ kind, at: performance.now() - began, ...details } as Event)
  }
  const about = { engine: 'it', seed, ttl: brief, clients: 3, fence: false, faults: [], versions: {} }
  log('run', { ...about, names: [], bound: { death: 0, election: 0 } })
  let requests = 0
  const recorded = clients.map((client, index) => {
    const view = Object.create(client) as Store
    for (const verb of ['acquire', 'renew', 'release'] as const) view[verb] = client[verb].bind(client) as never
    recordRequests(view, { client: index, history: { write: log }, next: () => requests++ })
    return view
  })
  await new Player(history, recorded, clients, brief).play()
  const found = answers(trace(events))
  if (found.length === 0) return undefined
  return [...found.map(({ what }) => what), ...events.map(event => JSON.stringify(event))].join('\n')
}

class Player {
  readonly #history: History
  /** They record what they are asked. */
  readonly #clients: readonly Store[]
  readonly #stores: readonly Store[]
  readonly #claims: readonly Claim[]
  readonly #watches: AbortController[] = []
  #failure: Error | undefined

  constructor(history: History, clients: readonly Store[], stores: readonly Store[], brief: number) {
    this.#history = history
    this.#clients = clients
    this.#stores = stores
    const name = `fuzz-${randomBytes(6).toString('hex')}`
    this.#claims = history.demands.map(({ limit, units, queue, roundTrip, isBrief }, index) => {
      const id = randomBytes(16).toString('hex')
      return {
        ...{ limit, units, queue, roundTrip, name, id },
        ...{ owner: `claim ${index}`, ttl: isBrief ? brief : LONG, note: '' },
      }
    })
  }

  async play(): Promise<void> {
    for (const step of this.#history.steps) await this.#take(step)
    for (const watch of this.#watches) watch.abort()
    const [client] = this.#clients as [Store]
    for (const claim of this.#claims) await client.release(claim, AbortSignal.timeout(PATIENCE)).catch(() => {})
    if (this.#failure) throw this.#failure
  }

  async #take(step: Step): Promise<void> {
    if (step.verb === 'wait') await pause(step.ms)
    else if (step.verb === 'together') await Promise.all(step.requests.map(request => this.#send(request)))
    else if (step.verb === 'abort' && !step.early) await this.#send(step.request, AbortSignal.timeout(1))
    else if (step.verb === 'hand over') {
      await Promise.all(this.#claims.map((_, claim) => this.#send({ verb: 'release', claim, client: claim % 3 })))
      await pause(step.ms)
    } else if (step.verb === 'follow' || step.verb === 'settle')
      for (const [claim, { queue }] of this.#claims.entries())
        if (queue) await this.#send({ verb: 'acquire', claim, client: claim % 3 })
    if ('claim' in step) await this.#send(step)
  }

  async #send(request: Request, signal = AbortSignal.timeout(PATIENCE)): Promise<void> {
    if (!('claim' in request) || request.claim === undefined) return
    const claim = this.#claims[request.claim] as Claim
    const client = claim.queue ? request.claim % 3 : request.client
    const store = this.#clients[client] as Store
    try {
      if (request.verb === 'renew') await store.renew({ ...claim, ttl: claim.ttl * request.factor }, signal)
      if (request.verb === 'release') await store.release(claim, signal)
      if (request.verb !== 'acquire' && request.verb !== 'copy') return
      const answer = await store.acquire(claim, signal)
      const isWatched = this.#history.demands[request.claim]?.isWatched === true
      if (!answer.held && claim.queue && isWatched) this.#watch(this.#stores[client] as Store, claim)
    } catch (error) {
      if (!signal.aborted && !LeaseError.is(error)) throw error
      // The outcome is unknown.
    }
  }

  #watch(store: Store, claim: Claim): void {
    const watch = new AbortController()
    this.#watches.push(watch)
    // It fails while its client is cut off.
    store
      .watch?.(claim, () => {}, watch.signal)
      .catch(error => {
        if (!watch.signal.aborted && !LeaseError.is(error))
          this.#failure = error instanceof Error ? error : new Error(String(error))
      })
  }
}
