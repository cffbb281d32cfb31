import type { Connection } from '../wire/connection.ts'
import { textOf } from '../wire/failure.ts'
import { ServerClock } from '../wire/server-clock.ts'
import { openWire, type RedisDriver, type Wire } from './client.ts'
import { isReply } from './failure.ts'
import { slotOf } from './keys.ts'
import type { LoneRequests } from './lone.ts'
import { evaluate, GONE, type Script } from './script.ts'

/** In an id. Other data may follow. */
const LENGTH_OF_ID = 32

/** Redis cuts off its microseconds. */
const RESOLUTION = 1

/** One request as the script gets it. */
export interface Request {
  readonly verb: string
  /** Of the lease. */
  readonly key: string
  /** Of the claim; or what stands for none. */
  readonly id: string
  /** `ttl life queues rest`: what else the verb needs. */
  readonly parameters: string
  /** When the server refuses it, by `performance.now()`; `undefined`: it is harmless however late. */
  readonly until: number | undefined
}

/** The server's time when it answered, and its answers in the order of the requests. */
export interface Reply {
  readonly now: number
  /** What else the script says of the server; empty if nothing. */
  readonly state: string
  readonly answers: readonly unknown[]
  /** Messages to waiters of this process, separated by commas. */
  readonly woken: string
  /** Why notifications to waiters were refused, if they were. */
  readonly refused: string | undefined
  /** The replies to each request, if each was carried out alone. */
  readonly alone?: readonly Reply[] | undefined
}

/** What the script gets with every call on one connection. */
export interface Preamble {
  /** Follow those of the requests. */
  readonly keys: readonly string[]
  /** `roundTrip`: milliseconds that the last request took. */
  args(roundTrip: number): readonly string[]
}

/** The script of a store, and how a connection is prepared for it. */
export interface ScriptSetup {
  readonly script: Script
  /** What a request that is alone may ask in place of the script. @default nothing */
  readonly lone?: LoneRequests | undefined
  /** Looks at the server of a new connection, when its time was `now`. Rejects if it must not be used. */
  prepare(wire: Wire, now: number): Promise<Preamble>
}

/** One connection, over which a script is called, and what is known of the clock of its server. */
export class ScriptConnection implements Connection {
  readonly wire: Wire
  readonly #script: Script
  readonly #lone: LoneRequests | undefined
  readonly #preamble: Preamble
  /** The hashes of scripts that the server, or a node of the cluster, has. */
  readonly #loaded = new Set<string>()
  /** Of a cluster by slot, for each node has a clock of its own. */
  readonly #clocks: Map<number, ServerClock> | undefined
  /** For a slot that has not answered yet: the lowest, so that its first request is refused rather than late. */
  readonly #clock = new ServerClock(RESOLUTION)

  private constructor(wire: Wire, { script, lone }: ScriptSetup, preamble: Preamble, isCluster: boolean) {
    this.wire = wire
    this.#script = script
    this.#lone = lone
    this.#preamble = preamble
    this.#clocks = isCluster ? new Map() : undefined
  }

  static async open(driver: RedisDriver, setup: ScriptSetup, closing: AbortSignal): Promise<ScriptConnection> {
    let preamble: Preamble = { keys: [], args: () => [] }
    let time = 0
    let sent = 0
    let received = 0
    const first = async (wire: Wire): Promise<void> => {
      sent = performance.now()
      const [seconds, micros] = (await wire.call(['TIME'])) as [unknown, unknown]
      received = performance.now()
      time = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
      preamble = await setup.prepare(wire, time)
    }
    const wire = await openWire(driver, first, closing)
    const connection = new ScriptConnection(wire, setup, preamble, driver.isCluster)
    connection.#clock.learn(time, sent, received)
    return connection
  }

  onEnd(ended: () => void): void {
    this.wire.onEnd(ended)
  }

  isOpen(): boolean {
    return this.wire.isOpen()
  }

  close(): void {
    this.wire.close()
  }

  /** Carries out requests, in a cluster of one slot. Rejects if their outcome is unknown. */
  carryOut(requests: readonly Request[], sent: number): Promise<Reply> {
    const [request] = requests
    if (!this.#lone || !request || requests.length > 1) return this.#carryOutAll(requests, sent)
    return this.#carryOutAlone(this.#lone, request, sent)
  }

  async #carryOutAll(requests: readonly Request[], sent: number): Promise<Reply> {
    try {
      return await this.#call(requests, sent, keysOf(requests, this.#script.touches))
    } catch (error) {
      if (!this.#clocks || !isSplit(error)) throw error
    }
    // Nothing was done. A request that touches only the key of its lease is served: a renewal, an annotation, an acquire
    // without a queue, and the release of a name without waiters.
    const alone: Reply[] = []
    // One after the other: node-redis sends ASKING by itself, which counts for the next command only.
    for (const request of requests)
      alone.push(await this.#call([unqueued(request)], performance.now(), [request.key]).catch(refusal))
    const woken = alone.map(reply => reply.woken).filter(Boolean)
    const refused = alone.find(reply => reply.refused !== undefined)?.refused
    return {
      ...(alone[0] as Reply),
      answers: alone.map(({ answers }) => answers[0]),
      woken: woken.join(),
      refused,
      alone,
    }
  }

  async #carryOutAlone(lone: LoneRequests, request: Request, sent: number): Promise<Reply> {
    const { key, until } = request
    const deadline = until === undefined ? 0 : Math.floor(this.#clock.at(until))
    const call = lone.callOf(request, deadline, sent, this.#clock.roundTrip)
    const text = call && String(await evaluate(this.wire, this.#loaded, call.program, call.keys, call.args))
    if (text) {
      const end = text.indexOf('\n')
      const now = Number(text.slice(0, end))
      this.#clock.learn(now, sent)
      return { now, state: '', answers: [text.slice(end + 1)], woken: '', refused: undefined }
    }
    const asked = call ? performance.now() : sent
    const reply = await this.#call([request], asked, keysOf([request], this.#script.touches))
    if (call) lone.learn(key, reply.answers[0], asked)
    return reply
  }

  async #call(requests: readonly Request[], sent: number, keys: string[]): Promise<Reply> {
    const key = requests[0]?.key ?? ''
    const slot = this.#clocks && slotOf(key)
    const clock = (slot !== undefined && this.#clocks?.get(slot)) || this.#clock
    const { keys: more } = this.#preamble
    keys.push(...more)
    const args = [...this.#preamble.args(clock.roundTrip)]
    write(requests, clock, args)
    const reply = await evaluate(this.wire, this.#loaded, this.#script, keys, args)
    const [head, ...answers] = Array.isArray(reply) ? reply : String(reply).split('\n')
    const [time = '', state = ''] = String(head).split(' ')
    const [woken = '', refused] = answers.slice(requests.length)
    const now = Number(time)
    this.#learn(slot, now, sent)
    return { now, state, answers, woken: String(woken), refused: refused && String(refused) }
  }

  #learn(slot: number | undefined, time: number, sent: number): void {
    if (slot === undefined) {
      this.#clock.learn(time, sent)
      return
    }
    let clock = this.#clocks?.get(slot)
    if (!clock) {
      clock = new ServerClock(RESOLUTION)
      this.#clocks?.set(slot, clock)
    }
    clock.learn(time, sent)
    this.#clock.lower(time, sent)
  }
}

/** Did a cluster refuse several keys because their slot moves, and only some are on this node yet? */
function isSplit(error: unknown): boolean {
  return /\bTRYAGAIN\b|Too many Cluster redirections/.test(String(error))
}

/** Its keys of a queue cannot be written, so an `acquire` does not join. It asks again, and joins when the slot has moved. */
function unqueued(request: Request): Request {
  if (request.verb !== 'acquire') return request
  return { ...request, parameters: request.parameters.replace(/^(\d+ \d+) [12]\d*/, '$1 0') }
}

/** An error response to a single request, as the script answers it. Throws any other error. */
function refusal(error: unknown): Reply {
  if (!isReply(error)) throw error
  return { now: 0, state: '', answers: [`!${textOf(error)}`], woken: '', refused: undefined }
}

/** The keys of all requests. Equal ones, one after the other, declare what they share once. */
function keysOf(requests: readonly Request[], touches: Script['touches']): string[] {
  const keys = requests.map(({ key }) => key)
  let last: Request | undefined
  for (const request of requests) {
    const { key, id, verb, parameters } = request
    const isNew = last?.key !== key || last.verb !== verb || last.parameters !== parameters
    for (const kind of touches[verb] ?? []) {
      if (kind === GONE) keys.push(key + kind + id.slice(0, LENGTH_OF_ID))
      else if (isNew) keys.push(key + kind)
    }
    last = request
  }
  return keys
}

/** Appends requests as the script reads them. Equal ones, one after the other, share a line and its earliest deadline. */
function write(requests: readonly Request[], clock: ServerClock, args: string[]): void {
  for (let start = 0; start < requests.length; ) {
    const { id, verb, parameters, until } = requests[start] as Request
    let ids = ''
    let earliest = until
    for (let request = requests[start]; request; request = requests[++start]) {
      if (request.verb !== verb || request.parameters !== parameters || request.id.length !== id.length) break
      if (earliest !== undefined && request.until !== undefined) earliest = Math.min(earliest, request.until)
      ids += request.id
    }
    const deadline = earliest === undefined ? 0 : Math.floor(clock.at(earliest))
    args.push(`${verb} ${id.length} ${deadline} ${parameters}`, ids)
  }
}
