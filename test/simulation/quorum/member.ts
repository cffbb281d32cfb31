import { LeaseError } from '../../../src/contract/errors.ts'
import type { Claim, ClaimKey, Wake } from '../../../src/contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../../src/contract/time.ts'
import type { Answer, Broken, Claims, Member, Renewal, Sight, Vote } from '../../../src/stores/quorum/member.ts'
import type { Machine } from '../machine.ts'
import type { Network } from '../network.ts'
import type { Ears, Greeting, VotingServer } from './server.ts'

/** As for a break, which has no ttl. */
const NO_TTL = 3 * LONGEST_REQUEST

class TooLate extends LeaseError<'OUTCOME_UNKNOWN'> {
  constructor() {
    super('OUTCOME_UNKNOWN', 'the request came late')
  }
}

/**
 * One server as a process sees it, over a bad network. Requests that could do harm later carry a deadline in the time of
 * the server, which is known from its replies, as the least that it can be.
 */
export class RemoteMember implements Member {
  readonly name: string
  readonly #machine: Machine
  readonly #server: VotingServer
  readonly #network: Network
  /** Of the connection. */
  #greeting: Greeting | undefined
  /** The server's time less the machine's. */
  #offset = 0
  /** The run of the server whose wakes are heard. */
  #heard: number | undefined
  readonly #wakes = new Map<string, Wake>()
  /** Those who were woken before they watched. */
  readonly #early = new Set<string>()
  readonly #ears: Ears
  #isClosed = false

  constructor(machine: Machine, server: VotingServer, network: Network) {
    this.name = server.name
    this.#machine = machine
    this.#server = server
    this.#network = network
    this.#ears = {
      listensTo: run => this.#heard === run && machine.state !== 'dead',
      hear: (id, delay) => network.wake(machine, () => this.#hear(id, delay)),
    }
  }

  async vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>> {
    if (this.#heard === undefined && this.#wakes.size > 0) this.#listen().catch(() => {})
    const { value, votesIn } = await this.#ask(claim.ttl, (server, inMs) =>
      // In an array, since no vote is an answer, and no answer one that came late.
      [server.vote(claim, attempt, this.#ears, inMs)],
    )
    return { value: value[0], votesIn }
  }

  commit(claim: Claim, attempt: number, seen: number, token: number): Promise<Answer<boolean>> {
    return this.#ask(claim.ttl, server => server.commit(claim, attempt, seen, token))
  }

  renew(claim: Claim, restore: boolean, number: number): Promise<Answer<Renewal>> {
    return this.#ask(claim.ttl, server => server.renew(claim, restore, number))
  }

  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>> {
    return this.#ask(claim.ttl, server => server.annotate(claim, revision))
  }

  release(key: ClaimKey): Promise<Answer<boolean>> {
    return this.#ask(undefined, server => server.release(key))
  }

  concede(key: ClaimKey, attempt: number, wakes: boolean): Promise<Answer<boolean>> {
    return this.#ask(undefined, server => server.concede(key, attempt, wakes))
  }

  break(name: string, claims: Claims, token: number): Promise<Answer<Broken>> {
    return this.#ask(NO_TTL, server => server.break(name, claims, token))
  }

  look(name: string): Promise<Answer<Sight>> {
    return this.#ask(undefined, server => server.look(name))
  }

  async *names(prefix: string): AsyncGenerator<readonly string[], void> {
    const { value } = await this.#ask(undefined, server => server.left().filter(name => name.startsWith(prefix)))
    yield value
  }

  async watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#wakes.set(id, wake)
    signal.addEventListener('abort', () => this.#wakes.delete(id), { once: true })
    if (this.#early.delete(id)) wake()
    if (this.#heard === undefined) await this.#listen()
  }

  isAnswer(failure: unknown): boolean {
    return failure instanceof TooLate
  }

  close(): void {
    this.#isClosed = true
    this.#wakes.clear()
  }

  async #listen(): Promise<void> {
    await this.#ask(undefined, () => true)
    this.#heard = this.#greeting?.run
  }

  #hear(id: string, delay: number): void {
    const wake = this.#wakes.get(id)
    if (wake) wake(delay)
    else this.#early.add(id)
  }

  async #ask<Value>(
    ttl: number | undefined,
    verb: (server: VotingServer, votesIn: number) => Value,
  ): Promise<{ value: Value; votesIn: number }> {
    const giveUp = ttl === undefined ? Number.POSITIVE_INFINITY : this.#machine.now() + requestLimit(ttl)
    for (;;) {
      if (this.#isClosed) throw new LeaseError('CLOSED', 'the store is closed')
      const greeting = this.#greeting ?? (await this.#greet())
      const deadline = giveUp + this.#offset
      const serve = () => this.#server.carryOut(greeting, deadline, verb)
      const { value, votesIn, time } = await this.#network.exchange(this.#machine, serve).catch(error => {
        this.#lose(greeting)
        throw error
      })
      this.#offset = time - this.#machine.now()
      if (value !== undefined) return { value, votesIn }
      if (this.#machine.now() >= giveUp) throw new TooLate()
    }
  }

  async #greet(): Promise<Greeting> {
    const greeting = await this.#network.exchange(this.#machine, async () => this.#server.greet())
    this.#greeting = greeting
    this.#offset = greeting.time - this.#machine.now()
    return greeting
  }

  /** What was said meanwhile is lost, so everybody asks. */
  #lose({ run }: Greeting): void {
    if (this.#greeting?.run !== run) return
    this.#greeting = undefined
    this.#heard = undefined
    for (const wake of [...this.#wakes.values()]) wake()
  }
}
