import type { Machine } from '../../../test/simulation/machine.ts'
import type { Random } from '../../../test/simulation/random.ts'
import type { World } from '../../../test/simulation/world.ts'
import type { Details, Kind } from '../history.ts'
import type { Grant, Lock } from './lock.ts'

/** The environment of a client. */
export interface Surroundings {
  readonly client: number
  readonly machine: Machine
  readonly world: World
  readonly random: Random
  readonly names: readonly string[]
  readonly ttl: number
  readonly lock: Lock
  newOp(): number
  newWrite(): number
  log<K extends Kind>(kind: K, details: Details[K], at?: number): void
  /** Does the resource accept this write, which arrives now? */
  decide(name: string, token: number, write: number): boolean
}

/** Acquires, writes and releases in a loop. A dead client stops in the middle. */
export async function compete(around: Surroundings): Promise<void> {
  const { machine, random, names, client, log, lock } = around
  for (;;) {
    await machine.sleep(random.between(0, 40))
    const of: Of = { client, name: random.pick(names), op: around.newOp() }
    log('asked', of)
    const granted = await wait(around, of.name, random.pick(lock.pause ? [0, 2_000, 8_000] : [0, 300, 2_000]))
    if (!granted) {
      log('failed', { ...of, code: 'BUSY' })
      continue
    }
    const { grant, sent } = granted
    const holding = new Holding(around, of, grant, sent)
    await holding.work()
    if (holding.isLost) continue
    log('releasing', of)
    const isReleased = (await lock.release(grant).catch(() => false)) === true
    log('released', { ...of, ...(isReleased && { outcome: 'released' }) })
  }
}

interface Of {
  readonly client: number
  readonly name: string
  readonly op: number
}

interface Granted {
  readonly grant: Grant
  /** When the granted request left. */
  readonly sent: number
}

async function wait(around: Surroundings, name: string, limit: number): Promise<Granted | undefined> {
  const { machine, random, lock, world } = around
  const giveUp = machine.now() + limit
  for (;;) {
    const sent = world.now
    const grant = await lock.acquire(name).catch(() => undefined)
    if (grant && grant.until > machine.now()) return { grant, sent }
    const left = giveUp - machine.now()
    if (left <= 0) {
      await lock.giveUp?.(name).catch(() => {})
      return undefined
    }
    if (lock.pause) await Promise.race([lock.pause(name), machine.sleep(left)])
    else await machine.sleep(random.between(5, 30))
  }
}

/** A held lock as its holder sees it. */
class Holding {
  isLost = false
  readonly #around: Surroundings
  readonly #of: Of
  readonly #grant: Grant
  #until: number
  #isOver = false

  constructor(around: Surroundings, of: Of, grant: Grant, sent: number) {
    this.#around = around
    this.#of = of
    this.#grant = grant
    this.#until = grant.until
    const { log, machine, random, ttl } = around
    log('granted', { ...of, token: String(grant.token), asked: sent })
    this.#look()
    this.#watch()
    if (random.chance(0.7)) machine.after(ttl / 3, () => void this.#beat())
  }

  /** Checks the lock before each write. A fault may happen between a check and its write. */
  async work(): Promise<void> {
    const { machine, random } = this.#around
    for (let steps = random.integer(1, 8); steps > 0; steps -= 1) {
      await machine.sleep(random.between(0, 60))
      if (!this.#look()) break
      if (random.chance(0.5)) await machine.sleep(random.between(0, 15))
      this.#write()
    }
    this.#isOver = true
  }

  #look(): boolean {
    const { machine, world, log } = this.#around
    const left = this.#until - machine.now()
    if (left <= 0) this.#lose('the time was over')
    if (this.isLost) return false
    log('believed', { ...this.#of, until: world.now + left })
    return true
  }

  #watch(): void {
    const { machine } = this.#around
    machine.after(this.#until - machine.now(), () => {
      if (machine.now() < this.#until) this.#watch()
      else this.#lose('the time was over')
    })
  }

  async #beat(): Promise<void> {
    const { lock, machine, ttl } = this.#around
    if (this.isLost || this.#isOver) return
    try {
      const until = await lock.renew(this.#grant)
      if (until === undefined) this.#lose('the server says so')
      else this.#until = until
      if (!this.#isOver) this.#look()
      machine.after(ttl / 3, () => void this.#beat())
    } catch {
      machine.after(ttl / 20, () => void this.#beat())
    }
  }

  #lose(reason: string): void {
    if (this.isLost || this.#isOver) return
    this.isLost = true
    this.#around.log('lost', { ...this.#of, reason })
  }

  #write(): void {
    const { world, random, machine, log, decide, newWrite } = this.#around
    const { token, name } = this.#grant
    const write = newWrite()
    log('writing', { ...this.#of, token: String(token), write })
    const delay = random.chance(0.1) ? random.between(0, 800) : random.between(0, 5)
    world.after(delay, () => {
      const isAccepted = decide(name, token, write)
      machine.deliver(() => log(isAccepted ? 'wrote' : 'refused', { ...this.#of, write }))
    })
  }
}
