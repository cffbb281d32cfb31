import type { Environment } from '../../contract/environment.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Answer, Member } from './member.ts'
import { type AskOptions, Node, quarantine } from './node.ts'

/** What the nodes have said so far to one question. */
export class Tally<Value> {
  /** How many have not. */
  pending: number
  readonly counted: { readonly node: Node; readonly value: Value }[] = []
  /** Those whose answers count in no majority. */
  readonly quarantined: { readonly node: Node; readonly value: Value; readonly votesIn: number }[] = []
  readonly failed: { readonly node: Node; readonly error: LeaseError }[] = []

  constructor(size: number) {
    this.pending = size
  }

  /** How many of those that count say so. */
  count(is: (value: Value) => boolean): number {
    let count = 0
    for (const { value } of this.counted) if (is(value)) count += 1
    return count
  }
}

export interface PollOptions<Value> extends AskOptions {
  /** Only these are asked. @default all */
  readonly nodes?: readonly Node[]
  /** Is told each answer that comes after the question is settled, and `undefined` if none came. */
  readonly late?: (node: Node, value: Value | undefined, error?: LeaseError) => void
}

/** The nodes, and how many of them are a majority. */
export class Quorum {
  readonly nodes: readonly Node[]
  /** Any two sets of so many nodes have one in common. */
  readonly majority: number
  readonly environment: Environment
  readonly #told = new Set<Promise<unknown>>()

  constructor(members: readonly Member[], nodeTimeout: number, environment: Environment) {
    this.nodes = members.map(member => new Node(member, environment.clock, nodeTimeout))
    this.majority = Math.floor(members.length / 2) + 1
    this.environment = environment
  }

  get size(): number {
    return this.nodes.length
  }

  /** Why a node can never serve as it is set up: a mistake that people should hear of, whatever the others can do. */
  get refusal(): LeaseError | undefined {
    for (const { refusal } of this.nodes) if (refusal) return refusal
    return undefined
  }

  /** Resolves when each node has answered or failed at least once since it was first asked. */
  async known(): Promise<void> {
    await Promise.all(this.nodes.map(({ known }) => known))
  }

  /**
   * Puts a question to all nodes at once and settles as soon as `judge` does, which is called after each answer; it must
   * settle once none is pending. Rejects with what `judge` throws.
   */
  poll<Value, Result extends object>(
    put: (member: Member) => Promise<Answer<Value>>,
    judge: (tally: Tally<Value>) => Result | undefined,
    { nodes = this.nodes, late, ...options }: PollOptions<Value> = {},
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const tally = new Tally<Value>(nodes.length)
      let isSettled = false
      const settle = (): void => {
        try {
          const result = judge(tally)
          if (result === undefined) return
          isSettled = true
          resolve(result)
        } catch (error) {
          isSettled = true
          reject(error)
        }
      }
      for (const node of nodes) {
        node.ask(put, options).then(
          ({ value, votesIn }) => {
            if (isSettled) return late?.(node, value)
            tally.pending -= 1
            if (votesIn) tally.quarantined.push({ node, value, votesIn })
            else tally.counted.push({ node, value })
            settle()
          },
          (error: LeaseError) => {
            if (isSettled) return late?.(node, undefined, error)
            tally.pending -= 1
            tally.failed.push({ node, error })
            settle()
          },
        )
      }
    })
  }

  /** Tells a node what must reach it whether it answers or not. Resolves when it did, or when its time is over. */
  tell(node: Node, put: (member: Member) => Promise<Answer<unknown>>): Promise<unknown> {
    const told: Promise<unknown> = node.ask(put, { owed: true }).then(
      () => this.#told.delete(told),
      () => this.#told.delete(told),
    )
    this.#told.add(told)
    return told
  }

  /** Resolves when nobody is being told anything. */
  async settled(): Promise<void> {
    await Promise.all(this.#told)
  }

  /** Too few nodes answered that count. Names each node's reason; the cause holds an error of each. */
  unavailable({ pending, counted, quarantined, failed }: Tally<unknown>): LeaseError {
    for (const { error } of failed) if (error.code === 'CLOSED') return error
    // Those that are known not to answer say so at once, before the others have.
    const missing = this.majority - counted.length - pending
    const sooner = quarantined.map(({ votesIn }) => votesIn).sort((a, b) => a - b)
    const retryAfter = sooner.length >= missing ? sooner[missing - 1] : undefined
    const errors = [
      ...failed.map(
        ({ node, error: { code, message, retryable } }) =>
          new LeaseError(code, `${node.name}: ${message}`, { retryable }),
      ),
      ...quarantined.map(
        ({ node, votesIn }) => new LeaseError('STORE_UNAVAILABLE', `${node.name}: ${quarantine(votesIn)}`),
      ),
    ]
    const reasons = errors.map(({ message }) => message).join('; ')
    const message = `no majority of the ${this.size} nodes could be had: ${reasons}`
    const cause = new AggregateError(errors, 'what the nodes said')
    const retryable = errors.length === 0 || errors.some(error => error.retryable)
    return new LeaseError('STORE_UNAVAILABLE', message, { cause, retryAfter, retryable })
  }
}
