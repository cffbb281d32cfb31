import { setTimeout as pause } from 'node:timers/promises'
import type { Engine } from '../engine.ts'
import { type ShiftedClock, startClock } from '../servers/clock.ts'
import { Child } from './child.ts'
import { ClientFaults } from './client-faults.ts'
import { Client } from './clients.ts'
import type { Choose } from './fault.ts'
import { type Kind, Recorder } from './history.ts'
import { Injector } from './injector.ts'
import { Network } from './network-faults.ts'
import { planOf } from './plan.ts'
import { pick } from './random.ts'
import type { ResourceOrder } from './resource.ts'
import { Tally } from './tally.ts'

export interface RunOptions {
  readonly engine: Engine
  readonly seed: number
  /** Milliseconds that things go wrong, after all have started. */
  readonly duration: number
  readonly ttl: number
  /** Processes that compete. */
  readonly clients: number
  /** What they compete for: each of them for each. */
  readonly names: readonly string[]
  /** Milliseconds that each client rests at least between two leases of a name. @default 0 */
  readonly pace?: number
  /** What goes wrong; those that the engine does not know are passed over. */
  readonly faults: readonly string[]
  /** Does the guarded resource refuse tokens lower than the highest that it has seen? */
  readonly fence: boolean
  /** The file that the history is appended to. */
  readonly history: string
  /** Ends the run early: all is mended and ended as at its end. */
  readonly signal?: AbortSignal | undefined
  /** Called each second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

export interface Progress {
  /** Milliseconds since the first client ran. */
  readonly elapsed: number
  readonly counts: Readonly<Partial<Record<Kind, number>>>
}

/**
 * Lets clients compete for names of an engine while things go wrong, and writes all that happens into a history. What it
 * started is gone when it settles, the engine excepted. Resolves to how often each kind of event happened; rejects if
 * a client ends by itself, or if something that was broken cannot be mended.
 */
export async function run(options: RunOptions): Promise<Progress> {
  const owned = new Owned()
  try {
    return await new Run(options, owned).go()
  } finally {
    await owned.end()
  }
}

class Run {
  readonly #options: RunOptions
  readonly #owned: Owned
  readonly #origin = process.hrtime.bigint()
  readonly #history: Recorder
  readonly #tally: Tally
  readonly #over = new AbortController()
  readonly #stop: AbortSignal
  #started = 0
  #failure: Error | undefined

  constructor(options: RunOptions, owned: Owned) {
    this.#options = options
    this.#owned = owned
    this.#history = owned.add(new Recorder(options.history, this.#origin), history => history.close())
    this.#tally = owned.add(new Tally(options.history), tally => tally.close())
    this.#stop = AbortSignal.any([this.#over.signal, ...(options.signal ? [options.signal] : [])])
  }

  async go(): Promise<Progress> {
    const { engine, seed, duration, ttl } = this.#options
    const port = await this.#startResource()
    const starting = Network.start(this.#options.clients, engine, this.#choose)
    const network = this.#owned.add(await starting, started => started[Symbol.asyncDispose]())
    const clocks = new Map<Client, ShiftedClock>()
    const clients = this.#clients(port, network, clocks)
    const holdsUp = engine.isHeldUpByClients === true
    const ofClients = new ClientFaults(clients, { ttl, holdsUp, clocks, choose: this.#choose })
    const possible = { ...ofClients.faults, ...network.faults, ...engine.faults }
    const faults = this.#options.faults.filter(name => name in possible)
    this.#introduce(faults)

    this.#owned.add(clients, all => Promise.all(all.map(client => client.stop())))
    await Promise.all(clients.map(client => client.start()))
    this.#started = performance.now()
    const telling = setInterval(() => this.#options.onProgress?.(this.#progress()), 1_000)
    this.#owned.add(telling, clearInterval)
    await sleep(engine.warmUp ?? 0, this.#stop)

    const injector = this.#owned.add(new Injector(possible, this.#history, this.#failed), each => each.end())
    const injecting = injector.run(planOf({ seed, faults, duration, ttl, lasts: engine.lasts }))
    await sleep(duration, this.#stop)
    await injector.end()
    await injecting
    await Promise.all(clients.map(client => client.stop()))
    if (this.#failure) throw this.#failure
    this.#history.write('ended', {})
    return this.#progress()
  }

  /** Answers its port. */
  async #startResource(): Promise<number> {
    const resource = new Child('resource')
    let isOver = false
    void resource.ended.then(output => {
      if (!isOver) this.#failed(new Error(`the guarded resource ended by itself: ${output.trim() || 'silently'}`))
    })
    this.#owned.add(resource, each => {
      isOver = true
      return each.kill()
    })
    const { history, fence } = this.#options
    const order: ResourceOrder = { history, origin: String(this.#origin), fence }
    resource.send(order)
    const { port } = (await resource.answer()) as { port: number }
    return port
  }

  /** Not started yet. Each has a clock of its own, if clocks are to be changed. */
  #clients(resource: number, network: Network, clocks: Map<Client, ShiftedClock>): Client[] {
    const { engine, names, ttl, seed, pace = 0, history } = this.#options
    const task = { names, ttl, seed, pace, history, origin: String(this.#origin), resource }
    return Array.from({ length: this.#options.clients }, (_, index) => {
      const clock = this.#options.faults.includes('client-clock') ? startClock() : undefined
      const setting = { opening: engine.open(network.of(index + 1)), env: { ...engine.env, ...clock?.env } }
      const client = new Client(index + 1, setting, task, this.#history, this.#failed)
      if (clock)
        clocks.set(
          client,
          this.#owned.add(clock, each => each.stop()),
        )
      return client
    })
  }

  #introduce(faults: readonly string[]): void {
    const { engine, seed, ttl, clients, names, fence } = this.#options
    const versions = { node: process.versions.node, ...engine.versions }
    const { name, bound } = engine
    this.#history.write('run', { engine: name, seed, ttl, clients, names, fence, faults, versions, bound })
  }

  #progress(): Progress {
    this.#tally.update()
    return { elapsed: performance.now() - this.#started, counts: { ...this.#tally.counts } }
  }

  /** Who holds nothing has nothing to lose, so that little would be seen. */
  readonly #choose: Choose = (random, clients) => {
    const holders = this.#tally.holders()
    const holding = clients.filter(({ number }) => holders.has(number))
    return pick(random, holding.length > 0 && random() < 0.8 ? holding : clients)
  }

  readonly #failed = (error: unknown): void => {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
    this.#over.abort()
  }
}

/** Things are ended in the opposite order of that in which they were begun, whatever becomes of the others. */
class Owned {
  readonly #ends: (() => unknown)[] = []

  add<Thing>(thing: Thing, end: (thing: Thing) => unknown): Thing {
    this.#ends.push(() => end(thing))
    return thing
  }

  async end(): Promise<void> {
    const errors: unknown[] = []
    for (const end of this.#ends.toReversed()) {
      try {
        await end()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }
}

/** Resolves early when `signal` aborts. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {})
}
