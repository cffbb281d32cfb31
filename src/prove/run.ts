import { setTimeout as pause } from 'node:timers/promises'
import type { Engine } from '../lab/engine.ts'
import { type ShiftedClock, startClock } from '../lab/servers/clock.ts'
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
    return await compete(options, owned)
  } finally {
    await owned.end()
  }
}

async function compete(options: RunOptions, owned: Owned): Promise<Progress> {
  const { engine, seed, duration, ttl, names, fence } = options
  const origin = process.hrtime.bigint()
  const history = new Recorder(options.history, origin)
  owned.add(() => history.close())
  const tally = new Tally(options.history)
  owned.add(() => tally.close())
  // Who holds nothing has nothing to lose, so that little would be seen.
  const choose: Choose = (random, all) => {
    const holders = tally.holders()
    const holding = all.filter(({ number }) => holders.has(number))
    return pick(random, holding.length > 0 && random() < 0.8 ? holding : all)
  }
  const over = new AbortController()
  const stop = AbortSignal.any([over.signal, ...(options.signal ? [options.signal] : [])])
  let failure: Error | undefined
  const failed = (error: unknown): void => {
    failure ??= error instanceof Error ? error : new Error(String(error))
    over.abort()
  }

  const resource = await startResource({ history: options.history, origin: String(origin), fence })
  let isOver = false
  void resource.child.ended.then(output => {
    if (!isOver) failed(new Error(`the guarded resource ended by itself: ${output.trim() || 'silently'}`))
  })
  owned.add(() => {
    isOver = true
    return resource.child.kill()
  })
  const network = await Network.start(options.clients, engine.endpoints, choose)
  owned.add(() => network[Symbol.asyncDispose]())
  const clocks = new Map<Client, ShiftedClock>()
  const clients = Array.from({ length: options.clients }, (_, index) => {
    const clock = options.faults.includes('client-clock') ? startClock() : undefined
    const setting = { opening: engine.open(network.of(index + 1)), env: { ...engine.env, ...clock?.env } }
    const task = {
      names,
      ttl,
      seed,
      pace: options.pace ?? 0,
      history: options.history,
      origin: String(origin),
      resource: resource.port,
    }
    const client = new Client(index + 1, setting, task, history, failed)
    if (clock) clocks.set(client, clock)
    if (clock) owned.add(() => clock.stop())
    return client
  })
  const ofClients = new ClientFaults(clients, { ttl, holdsUp: engine.isHeldUpByClients === true, clocks, choose })
  const possible = { ...ofClients.faults, ...network.faults, ...engine.faults }
  const faults = options.faults.filter(name => name in possible)
  history.write('run', {
    engine: engine.name,
    seed,
    ttl,
    clients: clients.length,
    names,
    fence,
    faults,
    versions: { node: process.versions.node, ...engine.versions },
    bound: engine.bound,
  })

  const injector = new Injector(possible, history, failed)
  const started = performance.now()
  const progress = (): Progress => {
    tally.update()
    return { elapsed: performance.now() - started, counts: { ...tally.counts } }
  }
  const telling = setInterval(() => options.onProgress?.(progress()), 1_000)
  owned.add(() => clearInterval(telling))
  owned.add(() => Promise.all(clients.map(client => client.stop())))
  owned.add(() => injector.end())
  await Promise.all(clients.map(client => client.start()))
  const { warmUp = 0 } = engine
  await sleep(warmUp, stop)
  const injecting = injector.run(planOf({ seed, faults, duration, ttl, lasts: engine.lasts }))
  await sleep(duration, stop)
  await injector.end()
  await injecting
  await Promise.all(clients.map(client => client.stop()))
  if (failure) throw failure
  history.write('ended', {})
  return progress()
}

/** Things are ended in the opposite order of that in which they were begun. */
class Owned {
  readonly #ends: (() => unknown)[] = []

  add(end: () => unknown): void {
    this.#ends.push(end)
  }

  async end(): Promise<void> {
    for (const end of this.#ends.toReversed()) await end()
  }
}

async function startResource(order: ResourceOrder): Promise<{ child: Child; port: number }> {
  const child = new Child('resource')
  child.send(order)
  const { port } = (await child.answer()) as { port: number }
  return { child, port }
}

/** Resolves early when `signal` aborts. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {})
}
