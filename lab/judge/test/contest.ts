import { Machine } from '../../../test/simulation/machine.ts'
import { fair, Network } from '../../../test/simulation/network.ts'
import { Random } from '../../../test/simulation/random.ts'
import { World } from '../../../test/simulation/world.ts'
import type { Details, Event, Kind } from '../history.ts'
import { compete, type Surroundings } from './client.ts'
import { Keys } from './keys.ts'
import { type Grant, type Home, type Lock, RightLock, type Wake } from './lock.ts'
import { SERVERS } from './quorum-lock.ts'

/** The parameters of a contest. */
export interface Contest {
  /** @default a correct lock over one server */
  lock(home: Home): Lock
  /** Does the resource refuse tokens below the highest that it has seen? @default true */
  readonly fence: boolean
  /** Does the lock have a queue, of which releases wake the first waiter? Then there are longer calm times. @default false */
  readonly queue: boolean
  /** Is client 1 far away? @default false */
  readonly far: boolean
}

/** Milliseconds of a contest with longer calm times. */
const LONG = 60_000

/** Milliseconds between two faults, at most. */
const GAP = 700
const LONG_GAP = 3_000

/** The round trip of a client far away, in milliseconds. */
const FAR = 120

const TTL = 300
const CLIENTS = 4
const NAMES = ['orders', 'reports']
const DURATION = 20_000

/** Milliseconds without faults at the end: enough to recover from the last one. */
const QUIET = 2_500
/** The same where waiters are woken, which is judged in calm times. */
const LONG_QUIET = 10_000

/** The timeout of a request, in milliseconds. */
const REQUEST_LIMIT = 100

const SLOWEST = 400

/** The history of a simulated contest of clients. The seed determines all of it. */
export async function contest(seed: number, about: Partial<Contest> = {}): Promise<Event[]> {
  const run = new Run(seed, { fence: true, queue: false, far: false, lock: home => new RightLock(home), ...about })
  await run.live()
  return run.history
}

class Run {
  readonly history: Event[] = []
  readonly #about: Contest
  readonly #random: Random
  readonly #world = new World()
  readonly #network: Network
  readonly #servers: readonly Keys[]
  readonly #machines = new Map<number, Machine>()
  /** Those that are paused when a reply leaves for them. */
  readonly #late = new Set<Machine>()
  readonly #listeners = new Map<number, (wake: Wake) => void>()
  readonly #marks = new Map<string, number>()
  #ids = 0
  #ops = 0
  #writes = 0
  #requests = 0

  constructor(seed: number, about: Contest) {
    this.#about = about
    this.#random = new Random(seed)
    this.#network = new Network(this.#world, this.#random)
    this.#servers = Array.from({ length: SERVERS }, () => new Keys(this.#world))
    this.#log('run', {
      engine: 'simulated',
      seed,
      ttl: TTL,
      clients: CLIENTS,
      names: this.#names,
      fence: about.fence,
      faults: ['pause', 'kill', 'delay'],
      versions: {},
      bound: about.queue ? { death: 500, election: 1_000 } : { death: 1_000, election: 1_000 },
    })
  }

  async live(): Promise<void> {
    for (let client = 1; client <= CLIENTS; client += 1) this.#start(client)
    this.#disturb()
    await this.#world.run(() => false, this.#duration)
    this.#log('ended', {})
  }

  #log<K extends Kind>(kind: K, details: Details[K], at = this.#world.now): void {
    this.history.push({ kind, at, ...details } as Event)
  }

  #start(client: number): void {
    const machine = new Machine(`client ${client}`, this.#world, this.#random)
    this.#machines.set(client, machine)
    this.#log('started', { client, pid: client })
    if (this.#about.queue) this.#log('opened', { client, waiting: 'pushed', order: 'first come, first served' })
    const roundTrip = this.#roundTrip(client)
    const home: Home = {
      client,
      machine,
      world: this.#world,
      roundTrip,
      ttl: TTL,
      newId: () => `${client}.${this.#ids++}`,
      ask: (command, server = 0) =>
        this.#ask(machine, roundTrip, async () => {
          const answer = command(this.#servers[server] as Keys)
          if (this.#late.delete(machine)) this.#stop(client, machine)
          return answer
        }),
      wake: (to, wake) => this.#wake(to, wake),
      listen: woken => this.#listeners.set(client, woken),
    }
    const around: Surroundings = {
      client,
      machine,
      world: this.#world,
      random: this.#random,
      names: this.#names,
      ttl: TTL,
      lock: this.#recorded(client, this.#about.lock(home)),
      newOp: () => this.#ops++,
      newWrite: () => this.#writes++,
      log: (kind, details, at) => this.#log(kind, details, at),
      decide: (name, token, write) => this.#decide(name, token, write),
    }
    void compete(around)
  }

  /** The lock, with a record of what it is asked and answers. */
  #recorded(client: number, lock: Lock): Lock {
    const claims = new Map<Pick<Grant, 'name' | 'id'>, string>()
    const ask = async <Answer>(
      name: string,
      verb: 'acquire' | 'renew' | 'release',
      claim: string,
      answer: Promise<Answer>,
      read: (answer: Answer) => Omit<Details['answered'], 'request'> | undefined,
    ): Promise<Answer> => {
      const request = this.#requests++
      this.#log('requested', { client, name, claim, request, verb, ttl: TTL, limit: 1, units: 1 })
      const said = read(await answer)
      if (said) this.#log('answered', { request, ...said })
      return answer
    }
    const held = (token: number) => ({ is: 'held', token: String(token), ttl: TTL, slots: [0] }) as const
    const [acquire, renew, release] = [lock.acquire.bind(lock), lock.renew.bind(lock), lock.release.bind(lock)]
    return Object.assign(lock, {
      acquire: (name: string) => {
        const claim = `${client} ${this.#requests}`
        return ask(name, 'acquire', claim, acquire(name), grant => {
          if (grant) claims.set(grant, claim)
          return grant ? held(grant.token) : { is: 'busy' }
        })
      },
      renew: (grant: Grant) =>
        ask(grant.name, 'renew', claims.get(grant) ?? '', renew(grant), until =>
          until === undefined ? { is: 'gone' } : held(grant.token),
        ),
      release: (grant: Pick<Grant, 'name' | 'id'>) => {
        const claim = claims.get(grant)
        if (claim === undefined) return release(grant) // the lock itself gives up
        return ask(grant.name, 'release', claim, release(grant), answer =>
          typeof answer === 'boolean' ? { is: answer ? 'released' : 'gone' } : undefined,
        )
      },
    })
  }

  get #duration(): number {
    return this.#about.queue ? LONG : DURATION
  }

  get #names(): readonly string[] {
    return this.#about.queue ? NAMES.slice(0, 1) : NAMES
  }

  #roundTrip(client: number): number {
    return this.#about.far && client === 1 ? FAR : 0
  }

  #wake(client: number, wake: Wake): void {
    const machine = this.#machines.get(client)
    const deliver = (): void => this.#listeners.get(client)?.(wake)
    if (machine) this.#world.after(this.#roundTrip(client) / 2, () => this.#network.wake(machine, deliver))
  }

  #ask<Answer>(machine: Machine, roundTrip: number, serve: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      machine.after(REQUEST_LIMIT + roundTrip, () => reject(new Error('no reply arrived')))
      const exchange = (): Promise<Answer> => this.#network.exchange(machine, serve)
      if (roundTrip === 0) exchange().then(resolve, reject)
      else
        this.#world.after(roundTrip / 2, () => {
          const arrived = (answer: Answer): unknown =>
            this.#world.after(roundTrip / 2, () => machine.deliver(() => resolve(answer)))
          exchange().then(arrived, reject)
        })
    })
  }

  /** A write arrives at the resource. */
  #decide(name: string, token: number, write: number): boolean {
    const mark = this.#marks.get(name) ?? 0
    const isAccepted = token >= mark || !this.#about.fence
    this.#marks.set(name, Math.max(mark, token))
    this.#log(isAccepted ? 'accepted' : 'rejected', { name, token: String(token), write, mark: String(mark) })
    return isAccepted
  }

  #disturb(): void {
    this.#world.after(this.#random.between(50, this.#about.queue ? LONG_GAP : GAP), () => {
      if (this.#world.now > this.#duration - (this.#about.queue ? LONG_QUIET : QUIET)) return
      const chance = this.#random.next()
      if (chance < 0.5) this.#pause()
      else if (chance < 0.8) this.#kill()
      else this.#delay()
      this.#disturb()
    })
  }

  #pause(): void {
    const [client, machine] = this.#random.pick([...this.#machines])
    if (this.#about.queue && this.#random.chance(0.5)) this.#late.add(machine)
    else this.#stop(client, machine)
  }

  #stop(client: number, machine: Machine): void {
    if (machine.state !== 'running') return
    const ms = this.#random.between(100, 1_200)
    const until = this.#world.now + ms
    this.#log('fault', { what: 'pause', target: machine.name, client, pausesClient: client, until })
    machine.stop(ms)
  }

  #kill(): void {
    const [client, machine] = this.#random.pick([...this.#machines])
    this.#log('fault', { what: 'kill', target: machine.name, client })
    this.#log('died', { client, pid: client })
    machine.crash()
    this.#start(client)
  }

  #delay(): void {
    const ms = this.#random.between(200, 1_000)
    const until = this.#world.now + ms + SLOWEST
    this.#log('fault', { what: 'delay', target: 'the network', until })
    this.#network.weather = { loss: 0.02, copies: 0, slow: 0.3, longest: SLOWEST }
    this.#world.after(ms, () => {
      this.#network.weather = fair
    })
  }
}
