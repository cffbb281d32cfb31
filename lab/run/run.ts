import { setTimeout as pause } from 'node:timers/promises'
import type { Engine } from '../engines/engine.ts'
import { addressFaults } from '../faults/address-faults.ts'
import { ClientFaults } from '../faults/client-faults.ts'
import type { Choose } from '../faults/fault.ts'
import { Network } from '../faults/network-faults.ts'
import { pick } from '../faults/random.ts'
import { type Kind, Recorder } from '../judge/history.ts'
import type { Shared } from '../judge/shared.ts'
import { type ShiftedClock, startClock } from '../servers/clock.ts'
import { type Names, startNames } from '../servers/names.ts'
import { Child } from './child.ts'
import { Client } from './client.ts'
import { HistoryTail } from './history-tail.ts'
import { Injector } from './injector.ts'
import { planOf } from './plan.ts'
import type { ResourceTask } from './resource-process.ts'
import { recordStalls } from './stalls.ts'

/** For how many ttls a run goes on in calm times. */
const CALM_END = 4

export interface RunOptions {
  readonly engine: Engine
  readonly seed: number
  /** How long faults are injected, in milliseconds, from when all clients have started. */
  readonly duration: number
  readonly ttl: number
  /** How many client processes compete. */
  readonly clients: number
  /** The names that every client competes for. */
  readonly names: readonly string[]
  /** How clients share these names. The others are leases. @default none */
  readonly shared?: Readonly<Record<string, Shared>> | undefined
  /** The shortest pause of a client between two leases of a name, in milliseconds. @default 0 */
  readonly pace?: number
  /** The faults to inject. Faults that the engine does not have are ignored. */
  readonly faults: readonly string[]
  /** Does the guarded resource refuse tokens below the highest one that it has seen? */
  readonly fence: boolean
  /** The file to append the history to. */
  readonly history: string
  /** Ends the run early, with all faults repaired. */
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
 * Lets clients compete for names while faults are injected, and writes the history. When it settles, nothing that it
 * started is left; the caller disposes the engine. Resolves to the number of events of each kind. Rejects if a client ends
 * by itself, or if a fault cannot be repaired.
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
  readonly #tail: HistoryTail
  readonly #over = new AbortController()
  readonly #stop: AbortSignal
  #started = 0
  #failure: Error | undefined

  constructor(options: RunOptions, owned: Owned) {
    this.#options = options
    this.#owned = owned
    this.#history = owned.add(new Recorder(options.history, this.#origin), history => history.close())
    this.#tail = owned.add(new HistoryTail(options.history), tail => tail.close())
    this.#stop = AbortSignal.any([this.#over.signal, ...(options.signal ? [options.signal] : [])])
  }

  async go(): Promise<Progress> {
    const { engine, seed, duration, ttl } = this.#options
    const port = await this.#startResource()
    const { endpoints, endsWithConnection } = engine
    const calm = ttl + engine.bound.election
    const choose = this.#choose
    const starting = Network.start({ clients: this.#options.clients, endpoints, endsWithConnection, ttl, choose })
    const network = this.#owned.add(await starting, started => started[Symbol.asyncDispose]())
    const clocks = new Map<Client, ShiftedClock>()
    const hasNames = this.#options.faults.includes('name-server') && endpoints.length > 1
    const names = hasNames ? this.#owned.add(startNames(), each => each.stop()) : undefined
    const clients = this.#clients(port, network, clocks, names)
    const blocksOthers = engine.clientsBlockOthers === true
    const clientFaults = new ClientFaults(clients, { ttl, blocksOthers, clocks, choose })
    const possible = {
      ...clientFaults.faults,
      ...network.faults,
      ...addressFaults({ proxies: network.proxies, names }),
      ...engine.faults,
    }
    const faults = this.#options.faults.filter(name => name in possible)
    this.#recordRun(faults)
    this.#owned.add(recordStalls(this.#history), end => end())

    this.#owned.add(clients, all => Promise.all(all.map(client => client.stop())))
    await Promise.all(clients.map(client => client.start()))
    this.#started = performance.now()
    const progress = setInterval(() => this.#options.onProgress?.(this.#progress()), 1_000)
    this.#owned.add(progress, clearInterval)
    await sleep(engine.warmUp ?? 0, this.#stop)

    const injector = this.#owned.add(new Injector(possible, this.#history, this.#failed), each => each.end())
    const injecting = injector.run(planOf({ seed, faults, duration, ttl, lasts: engine.lasts, calm }))
    await sleep(duration, this.#stop)
    await injector.end()
    await injecting
    await sleep(calm + CALM_END * ttl, this.#stop)
    await Promise.all(clients.map(client => client.stop()))
    if (this.#failure) throw this.#failure
    this.#history.write('ended', {})
    return this.#progress()
  }

  /** Resolves to its port. */
  async #startResource(): Promise<number> {
    const resource = new Child('resource-process')
    let isOver = false
    void resource.ended.then(output => {
      if (!isOver) this.#failed(new Error(`the guarded resource ended by itself: ${output.trim() || 'no output'}`))
    })
    this.#owned.add(resource, each => {
      isOver = true
      return each.kill()
    })
    const { history, fence } = this.#options
    const task: ResourceTask = { history, origin: String(this.#origin), fence }
    resource.send(task)
    const { port } = (await resource.answer()) as { port: number }
    return port
  }

  /** The clients, not started yet. Each has its own clock if `client-clock` is a fault. */
  #clients(resource: number, network: Network, clocks: Map<Client, ShiftedClock>, hosts?: Names): Client[] {
    const { engine, names, shared = {}, ttl, seed, pace = 0, history } = this.#options
    const task = { names, shared, ttl, seed, pace, history, origin: String(this.#origin), resource }
    return Array.from({ length: this.#options.clients }, (_, index) => {
      const clock = this.#options.faults.includes('client-clock') ? startClock() : undefined
      const proxies = network.of(index + 1)
      const named = hosts ? proxies.map(({ port }, server) => ({ host: hosts.of(server + 1), port })) : proxies
      const libraries = [clock?.env.LD_PRELOAD, hosts?.env.LD_PRELOAD].filter(Boolean).join(':')
      const env = { ...engine.env, ...clock?.env, ...hosts?.env, ...(libraries && { LD_PRELOAD: libraries }) }
      const setting = { opening: engine.open(named), env }
      const client = new Client(index + 1, setting, task, this.#history, this.#failed)
      if (clock)
        clocks.set(
          client,
          this.#owned.add(clock, each => each.stop()),
        )
      return client
    })
  }

  #recordRun(faults: readonly string[]): void {
    const { engine, seed, ttl, clients, names, shared, fence } = this.#options
    const versions = { node: process.versions.node, ...engine.versions }
    const { name, bound, endsWithConnection, endsByHolder } = engine
    const sharing = shared && { shared }
    const ends = { ...(endsWithConnection && { endsWithConnection }), ...(endsByHolder && { endsByHolder }) }
    const about = { engine: name, versions, bound, ...ends }
    const settings = { ...about, seed, ttl, clients, names, ...sharing, fence, faults }
    this.#history.write('run', settings)
  }

  #progress(): Progress {
    this.#tail.update()
    return { elapsed: performance.now() - this.#started, counts: { ...this.#tail.counts } }
  }

  /** Prefers holders, because only they have something to lose. */
  readonly #choose: Choose = (random, clients) => {
    const holders = this.#tail.holders()
    const holding = clients.filter(({ number }) => holders.has(number))
    return pick(random, holding.length > 0 && random() < 0.8 ? holding : clients)
  }

  readonly #failed = (error: unknown): void => {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
    this.#over.abort()
  }
}

/** Ends things in reverse order, even if some fail to end. */
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
