import type { Asker, Name } from '../../../src/stores/rules/name.ts'
import type { NameState } from '../../../src/stores/rules/state.ts'

/** What a client asks for, once. */
export interface Demand {
  readonly limit: number
  readonly units: number
  /** Does it wait? */
  readonly queue: boolean
}

export interface Plan {
  readonly demands: readonly Demand[]
  /** Clients that may stop for ever. */
  readonly crashes?: readonly number[]
  /** May a request that was answered arrive once more? */
  readonly copies?: boolean
  /** May an answer be lost? The client then withdraws. */
  readonly losses?: boolean
  /** May clients renew their leases? */
  readonly renewals?: boolean
  /** May a holder end its lease early without telling anybody, and so set back the end that waiters know? */
  readonly shortens?: boolean
  /** Clients that may ask before they have to. */
  readonly early?: readonly number[]
}

/** Milliseconds of a step of time, which is also the longest round trip. Grace periods and leases are multiples. */
const STEP = 200
const GRACE = STEP
const TTL = 5 * STEP

/** `ended`: its lease has. `over`: it was withdrawn. */
type Phase = 'idle' | 'waits' | 'holds' | 'ended' | 'over' | 'crashed'

interface Client {
  readonly phase: Phase
  /** When it has to ask: the earliest of its last answer and of the wakes since. It does so within `GRACE`. */
  readonly due: number
  /** The end of its lease, as it knows it. */
  readonly until: number
  readonly token: number
  /** May a copy of its `acquire` arrive? Until then. */
  readonly copy: number
  /** Has a later request extended its lease? Then a copy must not shorten it. */
  readonly slots: readonly number[]
}

/** Times are counted from now, tokens from the last one. */
export interface World {
  readonly name: NameState
  readonly clients: readonly Client[]
  /** Clients in the order in which they joined the queue, as we see it and not as the class does. */
  readonly line: readonly number[]
  readonly violation?: string
}

export type NameClass = typeof Name

const idle: Client = { phase: 'idle', due: 0, until: 0, token: 0, copy: 0, slots: [] }

const id = (client: number): string => String.fromCharCode(65 + client)
const isGone = ({ phase }: Client): boolean => phase === 'ended' || phase === 'over' || phase === 'crashed'

export class Model {
  readonly #Name: NameClass
  readonly #plan: Plan
  readonly #unused: NameState

  constructor(Class: NameClass, unused: NameState, plan: Plan) {
    this.#Name = Class
    this.#unused = unused
    this.#plan = plan
  }

  get start(): World {
    return { name: this.#unused, clients: this.#plan.demands.map(() => idle), line: [] }
  }

  *steps(world: World): Iterable<readonly [what: string, to: World]> {
    const { plan } = this
    for (const [client, state] of world.clients.entries()) {
      const { phase, due, copy } = state
      const who = id(client)
      if (phase === 'idle' || (phase === 'waits' && (due <= 0 || plan.early?.includes(client)))) {
        yield* this.#ask(world, client)
      }
      if (phase === 'waits' || phase === 'holds') {
        yield [`${who} ${phase === 'waits' ? 'withdraws' : 'releases'}`, this.#release(world, client)]
        if (plan.crashes?.includes(client))
          yield [`${who} stops`, this.#put(world, client, { phase: 'crashed', copy: 0 })]
      }
      if (phase === 'holds' && plan.renewals && state.until < TTL)
        for (const ttl of [TTL, 2 * TTL]) yield [`${who} renews for ${ttl} ms`, this.#renew(world, client, ttl)]
      if (phase === 'holds' && plan.shortens && state.until > STEP)
        yield [`${who} shortens its lease`, this.#renew(world, client, STEP)]
      if (copy > 0) yield [`a copy of the request of ${who} arrives`, this.#copy(world, client)]
    }
    const later = this.#later(world)
    if (later) yield [`${STEP} ms pass`, later]
  }

  get plan(): Plan {
    return this.#plan
  }

  #asker(client: number): Asker {
    const demand = this.#plan.demands[client] as Demand
    return { id: id(client), owner: '', note: '', ttl: TTL, grace: GRACE, ...demand }
  }

  *#ask(world: World, client: number): Iterable<readonly [what: string, to: World]> {
    const name = new this.#Name(0, world.name, Number.NEGATIVE_INFINITY)
    const answer = name.acquire(this.#asker(client))
    const who = id(client)
    const copy = this.#plan.copies ? 2 * STEP : 0
    const { queue } = this.#plan.demands[client] as Demand
    let to = this.#after(world, name, client)
    if (answer.held) {
      // A copy of its request may have been granted before.
      const isNew = !world.name.holders.some(holder => holder.id === id(client) && holder.expires > 0)
      const violation = isNew ? this.#overtakes(world, client) : undefined
      const held = { phase: 'holds', until: TTL, token: answer.token, slots: answer.slots, copy } as const
      to = { ...this.#put(to, client, held), line: to.line.filter(each => each !== client) }
      yield [`${who} asks, and holds ${answer.slots.join(' and ')}`, violation ? { ...to, violation } : to]
    } else {
      const line = queue && !to.line.includes(client) ? [...to.line, client] : to.line
      const busy = { phase: queue ? 'waits' : 'idle', due: Math.ceil(answer.retryAfter / STEP) * STEP, copy } as const
      to = { ...this.#put(to, client, queue ? busy : { ...busy, due: 0 }), line }
      yield [`${who} asks, and is ${answer.ahead} behind`, to]
    }
    if (!this.#plan.losses) return
    // It may have been granted, and does not know. It withdraws, and so do clients that gave up.
    const lost = this.#release(this.#put(this.#after(world, name, client), client, { copy }), client)
    yield [`${who} asks, gets no answer, and withdraws`, lost]
  }

  #release(world: World, client: number): World {
    const name = new this.#Name(0, world.name, Number.NEGATIVE_INFINITY)
    const answer = name.release(id(client))
    const to = this.#after(world, name, client)
    // `released` promises nothing for a copy, so the client asks until the answer is `gone`.
    if (answer === 'released' && to.clients[client]?.copy) name.release(id(client))
    return {
      ...this.#put({ ...to, name: name.state }, client, { phase: 'over', slots: [], token: 0 }),
      line: to.line.filter(each => each !== client),
    }
  }

  #renew(world: World, client: number, ttl: number): World {
    const name = new this.#Name(0, world.name, Number.NEGATIVE_INFINITY)
    const { token } = world.clients[client] as Client
    const answer = name.renew(id(client), ttl)
    const to = this.#after(world, name, client)
    if (answer?.token !== token) return { ...to, violation: `${id(client)} lost its lease before its time` }
    return this.#put(to, client, { until: ttl })
  }

  #copy(world: World, client: number): World {
    const name = new this.#Name(0, world.name, Number.NEGATIVE_INFINITY)
    const answer = name.acquire(this.#asker(client))
    const to = this.#put(this.#after(world, name, client), client, { copy: 0 })
    const { phase, token } = world.clients[client] as Client
    if (phase === 'over' && answer.held) return { ...to, violation: `${id(client)} was granted after its withdrawal` }
    if (phase === 'holds' && (!answer.held || answer.token !== token))
      return { ...to, violation: `a copy of the request of ${id(client)} ended or replaced its lease` }
    if (phase !== 'holds' && answer.held) {
      const violation = this.#overtakes(world, client)
      const line = to.line.filter(each => each !== client)
      // Nobody reads this answer. If it waits, it asks again, and then learns of its grant.
      return violation ? { ...to, line, violation } : { ...to, line }
    }
    return to
  }

  /** The world after a decision: wakes have arrived. */
  #after(world: World, name: Name, asker: number): World {
    const wakes = name.wakes(id(asker))
    const clients = world.clients.map((client, index) => {
      const delay = wakes.get(id(index))
      if (delay === undefined || client.phase !== 'waits') return client
      return { ...client, due: Math.min(client.due, Math.ceil(delay / STEP) * STEP) }
    })
    const { state } = name
    const violation = state.token > world.name.token + 1 ? 'a token was skipped' : undefined
    return { ...world, name: state, clients, ...(violation && { violation }) }
  }

  /** Would a grant to this client now overtake another? Whoever is before it in the line must have had its chance. */
  #overtakes(world: World, client: number): string | undefined {
    const at = world.line.indexOf(client)
    for (const other of at < 0 ? world.line : world.line.slice(0, at)) {
      const { phase, due } = world.clients[other] as Client
      const kept = world.name.waiters.find(waiter => waiter.id === id(other))
      if (!kept || kept.lapses <= 0) continue // it did not ask in time to keep its position
      if (phase === 'waits' && due + GRACE > 0)
        return `${id(client)} overtakes ${id(other)}, which had no chance to ask`
    }
    return undefined
  }

  /** A step of time, unless a client that lives has to ask first. */
  #later(world: World): World | undefined {
    const shift = (time: number): number => time - STEP
    for (const { phase, due } of world.clients) if (phase === 'waits' && due - STEP <= -GRACE) return undefined
    const { name } = world
    if (world.clients.every(isGone) && name.holders.length + name.waiters.length === 0) return undefined
    const floor = (time: number, least: number): number => Math.max(shift(time), least)
    const clients = world.clients.map(client => ({
      ...client,
      due: client.phase === 'waits' || client.phase === 'crashed' ? floor(client.due, -2 * GRACE) : 0,
      until: client.phase === 'holds' ? shift(client.until) : 0,
      copy: Math.max(shift(client.copy), 0),
    }))
    // A holder whose lease has ended knows it.
    const ended = clients.map(client =>
      client.phase === 'holds' && client.until <= 0 ? { ...client, phase: 'ended' as const, until: 0 } : client,
    )
    return {
      ...world,
      clients: ended,
      name: {
        ...name,
        holders: name.holders.map(each => ({ ...each, expires: floor(each.expires, -STEP) })),
        waiters: name.waiters.map(each => ({ ...each, lapses: floor(each.lapses, -STEP) })),
        gone: new Map([...name.gone].map(([key, until]) => [key, floor(until, -STEP)])),
        changed: floor(name.changed, -2 * GRACE),
      },
    }
  }

  #put(world: World, client: number, changes: Partial<Client>): World {
    return { ...world, clients: world.clients.with(client, { ...(world.clients[client] as Client), ...changes }) }
  }

  violationOf(world: World): string | undefined {
    if (world.violation) return world.violation
    const { holders, waiters } = world.name
    const living = holders.filter(({ expires }) => expires > 0)
    const used = living.flatMap(({ slots }) => slots)
    if (new Set(used).size < used.length) return 'a slot is used twice'
    for (const { limit } of living) if (used.some(slot => slot >= limit)) return 'a slot is at or above a limit in use'
    for (const [client, { phase, until, token, slots }] of world.clients.entries()) {
      if (phase !== 'holds') continue
      const own = living.find(holder => holder.id === id(client))
      if (until > 0 && (!own || own.expires < until || own.token !== token || own.slots.join() !== slots.join()))
        return `the lease of ${id(client)} is not what it was told`
    }
    const tokens = living.map(({ token }) => token)
    if (new Set(tokens).size < tokens.length) return 'two leases have one token'
    // Whoever would be granted the name by asking now must be about to ask.
    for (const [client, { phase, due }] of world.clients.entries()) {
      if (phase !== 'waits' || due <= 0) continue
      const kept = waiters.find(waiter => waiter.id === id(client))
      if (!kept || kept.lapses <= 0) continue
      const name = new this.#Name(0, world.name, Number.NEGATIVE_INFINITY)
      if (name.acquire(this.#asker(client)).held && this.#isSettled(world))
        return `${id(client)} could have the name, and nothing makes it ask for ${due} ms`
    }
    return undefined
  }

  /** Has nothing ended that nobody has seen? Whoever sees it wakes the waiters; and they ask at the end that they know. */
  #isSettled({ name: { holders, waiters } }: World): boolean {
    return holders.every(({ expires }) => expires > 0) && waiters.every(({ lapses }) => lapses > 0)
  }
}
