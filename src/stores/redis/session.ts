import { type Driver, type Link, openLink } from './client.ts'
import { slotOf } from './keys.ts'
import { GONE, type Script } from './script.ts'

/** Other data may follow the id. */
const LENGTH_OF_ID = 32

/** One request as the server sees it. */
export interface Order {
  readonly key: string
  /** Of the claim; or what stands for none. */
  readonly id: string
  /** What is to be done, and what else there is to know for that. */
  readonly verb: string
  readonly wishes: string
  /** When it is refused, by `performance.now()`; `undefined`: it does no harm however late. */
  readonly until: number | undefined
}

/** The server's time when it answered, and what it answered to each order. */
export interface Reply {
  readonly now: number
  /** What else the script says of the server; empty if nothing. */
  readonly state: string
  readonly answers: readonly unknown[]
  /** Why notifications to waiters were refused, if they were. */
  readonly refused: string | undefined
}

/** What is said to the script at every call on one connection. */
export interface Preamble {
  /** Follow those of the orders. */
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/** The script that a store's connections speak to, and how they begin. */
export interface Dialect {
  readonly script: Script
  /** Looks at the server on a new connection, when its time was `now`. Rejects if it must not be used. */
  greet(link: Link, now: number): Promise<Preamble>
}

/**
 * One connection and what it knows of its server's clock: the milliseconds to add to `performance.now()`. That clock
 * of ours stands still while the machine sleeps and nobody can set it, so that a wrong idea of the server's time makes
 * a request late at worst, and never lets a late one pass.
 */
export class Session {
  readonly link: Link
  readonly #script: Script
  readonly #preamble: Preamble
  /** Does the server, or one node of the cluster, have the script? */
  #isLoaded = false
  /** Of a cluster by slot, for each node has a clock of its own. */
  readonly #offsets: Map<number, number> | undefined
  /** Of a slot that has not answered yet: the lowest, so that its first request is refused rather than too late. */
  #offset = Number.POSITIVE_INFINITY

  private constructor(link: Link, script: Script, preamble: Preamble, isCluster: boolean) {
    this.link = link
    this.#script = script
    this.#preamble = preamble
    this.#offsets = isCluster ? new Map() : undefined
  }

  static async open(driver: Driver, { script, greet }: Dialect, closing: AbortSignal): Promise<Session> {
    let preamble: Preamble = { keys: [], args: [] }
    let time = 0
    let sent = 0
    let answered = 0
    const begin = async (link: Link): Promise<void> => {
      sent = performance.now()
      const [seconds, micros] = (await link.call(['TIME'])) as [unknown, unknown]
      answered = performance.now()
      time = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
      preamble = await greet(link, time)
    }
    const session = new Session(await openLink(driver, begin, closing), script, preamble, driver.isCluster)
    session.#learn(undefined, time, sent, answered)
    return session
  }

  /** Carries out orders, in a cluster of one slot. Rejects if nobody knows whether it did. */
  carryOut(orders: readonly Order[], sent: number): Promise<Reply> {
    const key = orders[0]?.key ?? ''
    const slot = this.#offsets && slotOf(key)
    const offset = this.#offsets?.get(slot ?? 0) ?? this.#offset
    const { keys, args: first } = this.#preamble
    const args = ['evalsha', this.#script.sha, '']
    for (const order of orders) args.push(order.key)
    for (const { key, id, verb } of orders)
      for (const kind of this.#script.touches[verb] ?? [])
        args.push(kind === GONE ? key + kind + id.slice(0, LENGTH_OF_ID) : key + kind)
    args.push(...keys)
    args[2] = String(args.length - 3)
    args.push(...first)
    tell(orders, offset, args)
    return this.#evaluate(args, key).then(reply => {
      const [head, ...answers] = reply as unknown[]
      const [said = '', refused] = String(head).split('\n')
      const [time = '', state = ''] = said.split(' ')
      const now = Number(time)
      this.#learn(slot, now, sent, performance.now())
      return { now, state, answers, refused }
    })
  }

  #evaluate(args: string[], key: string): Promise<unknown> {
    if (!this.#isLoaded) return this.#load(args, key)
    return this.link.call(args, key).catch(error => {
      if (!/NOSCRIPT|NoScript/.test(String(error))) throw error
      return this.#load(args, key)
    })
  }

  async #load([, , ...rest]: readonly string[], key: string): Promise<unknown> {
    const answer = await this.link.call(['eval', this.#script.source, ...rest], key)
    this.#isLoaded = true
    return answer
  }

  /** The server answered at some moment between these. An idea of it that fits is kept, else the earliest. */
  #learn(slot: number | undefined, time: number, sent: number, answered: number): void {
    const lowest = time - answered
    const highest = time + 1 - sent // its milliseconds are cut off
    const known = slot === undefined ? this.#offset : this.#offsets?.get(slot)
    if (known !== undefined && lowest <= known && known <= highest) return
    if (slot !== undefined) this.#offsets?.set(slot, lowest)
    if (slot === undefined || this.#offset > highest) this.#offset = lowest
  }
}

/** Adds what the script is told. Orders for the same, one after the other, share it, and the earliest of their moments. */
function tell(orders: readonly Order[], offset: number, args: string[]): void {
  for (let start = 0; start < orders.length; ) {
    const { id, verb, wishes, until } = orders[start] as Order
    let ids = ''
    let earliest = until
    for (let order = orders[start]; order; order = orders[++start]) {
      if (order.verb !== verb || order.wishes !== wishes || order.id.length !== id.length) break
      if (earliest !== undefined && order.until !== undefined) earliest = Math.min(earliest, order.until)
      ids += order.id
    }
    args.push(`${verb} ${id.length} ${earliest === undefined ? 0 : Math.floor(earliest + offset)} ${wishes}`, ids)
  }
}
