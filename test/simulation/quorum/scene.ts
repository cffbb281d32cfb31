import type { Busy, Claim, Grant } from '../../../src/contract/store.ts'
import type { Member } from '../../../src/stores/quorum/member.ts'
import { QuorumStore } from '../../../src/stores/quorum/store.ts'
import { guaranteesOf } from '../../../src/stores/redlock/guarantees.ts'
import { Machine } from '../machine.ts'
import { Network } from '../network.ts'
import { Random } from '../random.ts'
import { World } from '../world.ts'
import { change } from './change.ts'
import { RemoteMember } from './member.ts'
import { type Flaw, VotingServer } from './server.ts'
import type { Variant } from './simulate.ts'

const NODE_TIMEOUT = 50
export const MAX_TTL = 2_000

const never = new AbortController().signal

/** A few servers and processes over a network that does what a test says. */
export class Scene {
  readonly world: World = new World()
  readonly servers: readonly VotingServer[]
  readonly violations: string[] = []
  readonly #random = new Random(1)
  readonly #networks: readonly Network[]
  readonly #variant: Variant

  constructor(size: number, variant: Variant = {}) {
    const flaw: Flaw = variant.flaw ?? {}
    const fail = (what: string): void => void this.violations.push(what)
    this.#variant = variant
    this.servers = Array.from(
      { length: size },
      (_, index) => new VotingServer(`node ${index}`, this.world, { maxTtl: MAX_TTL, rate: 1, flaw, fail }),
    )
    this.#networks = this.servers.map(() => new Network(this.world, this.#random))
  }

  /** A process, connected to all, whose wall clock is ahead by `ahead` ms. */
  async process(ahead = 0): Promise<Process> {
    const machine = new Machine('process', this.world, this.#random)
    machine.setWall(ahead)
    const process = new Process(this, machine, this.#networks, this.#variant)
    await this.outcome(Array.fromAsync(process.store.inspect({ name: ' ' }, never)))
    return process
  }

  /** What comes of it, however long that takes. */
  async outcome<Result>(result: Promise<Result>): Promise<Result> {
    let isSettled = false
    const settle = (): void => {
      isSettled = true
    }
    result.then(settle, settle)
    await this.world.run(() => isSettled, this.world.now + 60_000)
    return result
  }

  /** Time passes. */
  async pass(ms: number): Promise<void> {
    await this.world.run(() => false, this.world.now + ms)
  }
}

type Verb = 'vote' | 'commit' | 'renew' | 'restore' | 'break'

export class Process {
  readonly store: QuorumStore
  readonly machine: Machine
  readonly #scene: Scene
  readonly #networks: readonly Network[]
  /** For what the next requests wait, by verb and node. */
  readonly #kept = new Map<string, Promise<void>[]>()

  constructor(scene: Scene, machine: Machine, networks: readonly Network[], variant: Variant) {
    const { member: changed = member => member } = variant
    this.machine = machine
    this.#scene = scene
    this.#networks = networks
    const members = scene.servers.map((server, index) => {
      const member = new RemoteMember(machine, server, networks[index] as Network)
      return change<Member>(member, {
        vote: (...asked) => this.#passing('vote', index, () => member.vote(...asked)),
        commit: (...asked) => this.#passing('commit', index, () => member.commit(...asked)),
        renew: (...asked) => this.#passing(asked[1] ? 'restore' : 'renew', index, () => member.renew(...asked)),
        break: (...asked) => this.#passing('break', index, () => member.break(...asked)),
      })
    })
    this.store = new QuorumStore(
      members.map((member, index) => changed(member, index, members)),
      {
        kind: 'simulated',
        guarantees: guaranteesOf(members.length, true, false),
        nodeTimeout: NODE_TIMEOUT,
        maxTtl: MAX_TTL,
        drift: 0.01,
        environment: { clock: machine, random: () => 0.5 },
      },
    )
  }

  /** From now on it hears and is heard by these nodes only. */
  reaches(...nodes: number[]): void {
    for (const [index, { cutUp }] of this.#networks.entries()) {
      if (nodes.includes(index)) cutUp.delete(this.machine)
      else cutUp.add(this.machine)
    }
  }

  /** Keeps the next such request to a node back, or the one after those kept; answers how to let it go on. */
  keep(verb: Verb, node: number): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    const key = `${verb} ${node}`
    this.#kept.set(key, [...(this.#kept.get(key) ?? []), promise])
    return resolve
  }

  claim(id: string, ttl = 1_500): Claim {
    return { name: 'a', id, owner: 'somebody', ttl, note: '', queue: true }
  }

  acquire(claim: Claim): Promise<Grant | Busy> {
    return this.store.acquire(claim, never)
  }

  /** The token of a claim that is granted. */
  async token(claim: Claim): Promise<bigint> {
    const answer = await this.#scene.outcome(this.acquire(claim))
    if (!answer.held) throw new Error(`${claim.id} was not granted`)
    return answer.token
  }

  async #passing<Answer>(verb: Verb, node: number, send: () => Promise<Answer>): Promise<Answer> {
    await this.#kept.get(`${verb} ${node}`)?.shift()
    return send()
  }
}
