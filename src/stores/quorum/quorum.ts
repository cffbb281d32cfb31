import type { Environment } from '../../contract/environment.ts'
import { LeaseError } from '../../contract/errors.ts'
import { CHECK } from '../../contract/request.ts'
import type { Answer, Member } from './member.ts'
import { type AskOptions, Node, PROBE_INTERVAL, quarantine } from './node.ts'

/** The nodes, and the size of a majority. */
export class Quorum {
  readonly nodes: readonly Node[]
  /** Any two sets of this many nodes overlap. */
  readonly majority: number
  readonly environment: Environment
  readonly #owed = new Set<Promise<unknown>>()

  constructor(members: readonly Member[], nodeTimeout: number, environment: Environment) {
    this.nodes = members.map(member => new Node(member, environment.clock, nodeTimeout))
    this.majority = Math.floor(members.length / 2) + 1
    this.environment = environment
  }

  get size(): number {
    return this.nodes.length
  }

  /** A permanent error in the configuration of a node. It is reported even if the other nodes are a majority. */
  get refusal(): LeaseError | undefined {
    for (const { refusal } of this.nodes) if (refusal) return refusal
    return undefined
  }

  /** Resolves when each node has answered or failed at least once. */
  async known(): Promise<void> {
    await Promise.all(this.nodes.map(({ known }) => known))
  }

  /**
   * Sends a request to all nodes in parallel, and calls `judge` after each answer. Resolves with the first result of
   * `judge`, or rejects with what it throws. Once no answer is pending, `judge` must do one or the other.
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

  /** Sends a request that must reach the node even if it is unresponsive. Resolves when it answers, or after the timeout. */
  tell(node: Node, put: (member: Member) => Promise<Answer<unknown>>): Promise<unknown> {
    const request: Promise<unknown> = node.ask(put, { owed: true }).then(
      () => this.#owed.delete(request),
      () => this.#owed.delete(request),
    )
    this.#owed.add(request)
    return request
  }

  /** Resolves when no such request is in flight. */
  async settled(): Promise<void> {
    await Promise.all(this.#owed)
  }

  /** The error for too few answers that count. It gives the reason of each node, and its cause has an error for each. */
  unavailable({ pending, counted, quarantined, failed }: Tally<unknown>): LeaseError {
    for (const { error } of failed) if (error.code === 'CLOSED') return error
    // Nodes that are known to be unresponsive fail at once, before the others have answered.
    const missing = this.majority - counted.length - pending
    const probed = failed.filter(({ error }) => error.retryable).map(() => PROBE_INTERVAL)
    const sooner = [...quarantined.map(({ votesIn }) => votesIn), ...probed].sort((a, b) => a - b)
    const retryAfter = quarantined.length >= missing ? sooner[missing - 1] : undefined
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
    const advice = reasons.includes(CHECK) ? CHECK : '' // once, instead of once for each node
    const message = `no majority of the ${this.size} nodes is available: ${reasons.replaceAll(CHECK, '')}${advice}`
    const cause = new AggregateError(errors, 'the errors of the nodes')
    // The nodes that may serve later may be too few for a majority.
    const refusals = errors.filter(error => !error.retryable)
    const isFinal = refusals.length > this.size - this.majority
    const code = isFinal && refusals[0] ? refusals[0].code : 'STORE_UNAVAILABLE'
    return new LeaseError(code, message, { cause, retryAfter, retryable: !isFinal })
  }
}

/** The answers of the nodes to one request, so far. */
export class Tally<Value> {
  /** The number of nodes that have not answered yet. */
  pending: number
  readonly counted: { readonly node: Node; readonly value: Value }[] = []
  /** Answers that do not count in a majority. */
  readonly quarantined: { readonly node: Node; readonly value: Value; readonly votesIn: number }[] = []
  readonly failed: { readonly node: Node; readonly error: LeaseError }[] = []

  constructor(size: number) {
    this.pending = size
  }

  /** The number of counted answers for which `is` returns true. */
  count(is: (value: Value) => boolean): number {
    let count = 0
    for (const { value } of this.counted) if (is(value)) count += 1
    return count
  }
}

export interface PollOptions<Value> extends AskOptions {
  /** The nodes to ask. @default all */
  readonly nodes?: readonly Node[]
  /** Called with each answer that comes after the poll is settled, or with `undefined` and an error. */
  readonly late?: (node: Node, value: Value | undefined, error?: LeaseError) => void
}

/** A `judge` for `poll` that settles once every node has answered or failed. */
export function whenAll<Value>(tally: Tally<Value>): Tally<Value> | undefined {
  return tally.pending === 0 ? tally : undefined
}
