import type { Keys } from './keys.ts'
import { type Grant, type Home, RightLock, type Wake } from './lock.ts'

/** A waiter in the queue of a name. */
export interface Place {
  readonly name: string
  readonly id: string
  readonly client: number
  /** When the place lapses, by the time of the world. */
  readonly until: number
  readonly roundTrip: number
}

/** A wait of this client. */
interface Waiting {
  readonly id: string
  readonly woken: PromiseWithResolvers<void>
}

/** Milliseconds for which the name is kept for the first waiter, in addition to its round trip. */
const TURN = 40

/** Milliseconds after which a waiter asks again although nothing woke it. */
const AGAIN = 200

/**
 * Correct over one server, first come, first served. A release wakes the first waiter, and the
 * next one after its grace period. A wake grants nothing, so a lost one
 * costs only time.
 */
export class QueueLock extends RightLock {
  readonly #waiting = new Map<string, Waiting>()

  constructor(home: Home) {
    super(home)
    home.listen(wake => this.woken(wake))
  }

  override async acquire(name: string): Promise<Grant | undefined> {
    const { machine, ttl } = this.home
    const sent = machine.now()
    const { id } = this.#waitingFor(name)
    const token = await this.take(name, id)
    if (token === undefined) return undefined
    const grant = { name, id, token, until: this.end(sent, ttl) }
    if (grant.until <= machine.now()) this.late()
    else this.#waiting.delete(name)
    return grant
  }

  /** Resolves when the waiter should ask again. */
  async pause(name: string): Promise<void> {
    const { id, woken } = this.#waitingFor(name)
    await Promise.race([woken.promise, this.home.machine.sleep(this.again())])
    this.#waiting.set(name, { id, woken: Promise.withResolvers() })
  }

  async giveUp(name: string): Promise<void> {
    const id = this.#waiting.get(name)?.id
    this.#waiting.delete(name)
    if (id)
      await this.home.ask(keys =>
        write(
          keys,
          name,
          queueOf(keys, name).filter(each => each.id !== id),
        ),
      )
  }

  override release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    const { world } = this.home
    return this.home.ask(keys => {
      if (!keys.compare(name, id)) return false
      keys.set(`${name} end`, String(world.now))
      let turn = 0
      for (const place of queueOf(keys, name).filter(({ until }) => until > world.now)) {
        world.after(turn, () => this.wake(keys, place))
        turn += this.turnOf(place.roundTrip)
      }
      return true
    })
  }

  protected override take(name: string, id: string): Promise<number | undefined> {
    const { ttl, client, roundTrip, world } = this.home
    return this.home.ask(keys => {
      const { now } = world
      const holder = keys.get(name)
      if (holder === id) {
        this.hold(keys, name, id)
        return Number(keys.get(`${name} token`))
      }
      const places = queueOf(keys, name).filter(({ until }) => until > now)
      const ahead = places.findIndex(each => each.id === id)
      const before = ahead < 0 ? places : places.slice(0, ahead)
      const free = Math.min(now, Number(keys.get(`${name} end`) ?? 0))
      const turn = before.reduce((sum, each) => sum + this.turnOf(each.roundTrip), 0)
      if (holder === undefined && now >= free + turn) {
        write(
          keys,
          name,
          places.filter(each => each.id !== id),
        )
        this.hold(keys, name, id)
        return keys.increment(`${name} token`)
      }
      const place = { name, id, client, until: now + 2 * ttl, roundTrip }
      const others = ahead < 0 ? [...places, place] : places.map(each => (each.id === id ? place : each))
      write(keys, name, others)
      return undefined
    })
  }

  protected override async prolong(name: string, id: string): Promise<boolean> {
    return this.home.ask(keys => {
      const isHeld = keys.get(name) === id
      if (isHeld) this.hold(keys, name, id)
      return isHeld
    })
  }

  protected hold(keys: Keys, name: string, id: string): void {
    const { ttl, world } = this.home
    keys.set(name, id, ttl)
    keys.set(`${name} end`, String(world.now + ttl))
  }

  #waitingFor(name: string): Waiting {
    const waiting = this.#waiting.get(name) ?? { id: this.newId(), woken: Promise.withResolvers<void>() }
    this.#waiting.set(name, waiting)
    return waiting
  }

  // Variants override these:

  protected wake(_keys: Keys, { client, ...wake }: Place): void {
    this.home.wake(client, wake)
  }

  protected woken({ name, id }: Wake): void {
    const waiting = this.#waiting.get(name)
    if (waiting?.id === id) waiting.woken.resolve()
  }

  /** A grant was over when it was read. It is not accepted, and the waiter asks again. */
  protected late(): void {}

  protected again(): number {
    return AGAIN
  }

  protected turnOf(roundTrip: number): number {
    return TURN + roundTrip
  }
}

function queueOf(keys: Keys, name: string): readonly Place[] {
  return JSON.parse(keys.get(`${name} queue`) ?? '[]') as readonly Place[]
}

function write(keys: Keys, name: string, places: readonly Place[]): void {
  keys.set(`${name} queue`, JSON.stringify(places))
}
