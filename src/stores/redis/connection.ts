import type { Connection } from '../wire/connection.ts'
import { textOf } from '../wire/failure.ts'
import { ServerClock } from '../wire/server-clock.ts'
import { inTime, patienceFor } from '../wire/timeouts.ts'
import { openWire, type RedisDriver, type Wire } from './client.ts'
import { isMoving, isReply } from './failure.ts'
import { slotOf } from './keys.ts'
import type { LoneRequests } from './lone.ts'
import { evaluate, GONE, type Script } from './script.ts'

/** The length of a claim's id at the start of `Request.id`. Other data may follow it. */
const LENGTH_OF_ID = 32

/** The server's time is rounded down to milliseconds. */
const RESOLUTION = 1

/** One request, as the script receives it. */
export interface Request {
  readonly verb: string
  /** The key of the lease. */
  readonly key: string
  /** The id of the claim, or a placeholder. */
  readonly id: string
  /** `ttl life queues rest`: the other parameters of the verb. */
  readonly parameters: string
  /**
   * The time from which the server refuses it, by `performance.now()`. `undefined`: it is harmless however late it arrives.
   */
  readonly until: number | undefined
}

/** The server's time when it answered, and its answers in the order of the requests. */
export interface Reply {
  readonly now: number
  /** Other state of the server that the script reports, or an empty text. */
  readonly state: string
  readonly answers: readonly unknown[]
  /** Messages to waiters of this process, separated by commas. */
  readonly woken: string
  /** The reason why notifications to waiters were refused, if they were. */
  readonly refused: string | undefined
  /** Why one of the requests got no answer, if they were sent one by one. */
  readonly failed?: unknown
  /** The replies to each request, if the requests were sent one by one. */
  readonly alone?: readonly Reply[] | undefined
}

/** The keys and arguments that the script receives with every call on one connection. */
export interface Preamble {
  /** The keys that follow those of the requests. */
  readonly keys: readonly string[]
  /** The arguments that come first. `roundTrip`: milliseconds that the last request took. */
  args(roundTrip: number): readonly string[]
}

/** The script of a store, and the preparation of a connection for it. */
export interface ScriptSetup {
  readonly script: Script
  /** The programs that a lone request may call in place of the script. @default none */
  readonly lone?: LoneRequests | undefined
  /** Checks the server of a new connection, whose time was `now`. Rejects if the server must not be used. */
  prepare(wire: Wire, now: number): Promise<Preamble>
}

/** One connection that calls a script, and an estimate of its server's clock. */
export class ScriptConnection implements Connection {
  readonly wire: Wire
  readonly #script: Script
  readonly #lone: LoneRequests | undefined
  readonly #preamble: Preamble
  /** The hashes of the scripts that the server, or a node of the cluster, has loaded. */
  readonly #loaded = new Set<string>()
  /** The clocks of a cluster by hash slot, because each node has its own. */
  readonly #clocks: Map<number, ServerClock> | undefined
  /**
   * The clock for a hash slot that has not answered yet. It is the lowest, so the first request is refused rather than
   * carried out late.
   */
  readonly #clock = new ServerClock(RESOLUTION)

  /** The end of the last turn of requests, if the wire redirects one at a time. */
  #turn: Promise<unknown> = Promise.resolve()

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

  /** Carries out requests, which in a cluster all have the same hash slot. Rejects if their outcome is unknown. */
  carryOut(requests: readonly Request[], sent: number): Promise<Reply> {
    const [request] = requests
    if (!this.#lone || !request || requests.length > 1) return this.#carryOutAll(requests, sent)
    return this.#carryOutAlone(this.#lone, request, sent)
  }

  async #carryOutAll(requests: readonly Request[], sent: number): Promise<Reply> {
    try {
      return await this.#call(requests, sent, keysOf(requests, this.#script.touches))
    } catch (error) {
      if (!this.#clocks || !isMoving(String(error))) throw error
    }
    // Nothing was done.
    if (!this.wire.redirectsOne) return this.#carryOutOneByOne(requests)
    const turn = this.#turn.then(() => this.#carryOutOneByOne(requests))
    this.#turn = turn.catch(() => {})
    return turn
  }

  /**
   * Sends each request with the key of its lease only, so the node that has this key carries it out. The script refuses a
   * request that needs other keys which are not there. A node that does not answer fails only the requests for its keys.
   */
  async #carryOutOneByOne(requests: readonly Request[]): Promise<Reply> {
    const alone: Reply[] = []
    // All answers wait for a node that hangs, and must still come in time.
    const until = Math.min(...requests.map(request => request.until ?? Number.POSITIVE_INFINITY))
    const patience = patienceFor((until - performance.now()) / 2)
    const send = async (request: Request, index: number): Promise<void> => {
      alone[index] = await inTime(this.#carryOutSplit(request), patience).catch(refusal)
    }
    if (this.wire.redirectsOne) for (const [index, request] of requests.entries()) await send(request, index)
    else await Promise.all(requests.map(send))
    const unanswered = alone.filter(({ failed }) => failed !== undefined)
    const failed = unanswered[0]?.failed
    if (unanswered.length === alone.length) throw failed
    const woken = alone.map(reply => reply.woken).filter(Boolean)
    const refused = alone.find(reply => reply.refused !== undefined)?.refused
    return {
      ...(alone[0] as Reply),
      answers: alone.map(({ answers }) => answers[0]),
      woken: woken.join(),
      refused,
      failed,
      alone,
    }
  }

  async #carryOutSplit(request: Request): Promise<Reply> {
    const { verb, key, id } = request
    // The tombstone of the claim may be on the other node. While the slot moves, none is added on the node that loses it.
    if (verb === 'acquire' && (await this.wire.call(['get', key + GONE + id], key)) !== null)
      return { now: 0, state: '', answers: ['x'], woken: '', refused: undefined }
    return this.#call([request], performance.now(), [key])
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

/** An error response to a lone request, in the form in which the script answers it, or why there is no answer. */
function refusal(error: unknown): Reply {
  const failed = isReply(error) ? undefined : error
  return { now: 0, state: '', answers: [`!${textOf(error)}`], woken: '', refused: undefined, failed }
}

/** The keys of all requests. Consecutive equal requests declare their common keys once. */
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

/**
 * Appends requests in the format of the script. Consecutive equal requests share a line and the earliest of their
 * deadlines.
 */
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
