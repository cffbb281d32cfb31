import type { Claim } from '../../contract/store.ts'
import type { Node } from './nodes.ts'
import type { Details } from './record.ts'

/** A claim that has a node of this session or may have one. */
export interface Position {
  readonly name: string
  readonly id: string
  /** The claim as it last asked. */
  claim: Claim
  /**
   * The node of the claim. `undefined` while the outcome of a request is unknown, after two nodes were found, and after a
   * sweep deleted it.
   */
  node: Node | undefined
  /** The transaction that created the node. */
  czxid: bigint
  /** The token of a claim that holds. */
  token: bigint | undefined
  /** Was a lease being moved to this session? Without an answer, it may hold by a node that is not known here. */
  mayHold: boolean
  /** The node directly before this one, whose end wakes the waiter. */
  behind: Node | undefined
  /** The signal of its watch, not aborted while the claim waits to be woken. */
  watch: AbortSignal | undefined
  /** The time after which the claim is abandoned. */
  until: number
  isLeaving: boolean
}

/** A claim that holds, in any session: its node and the content of that. */
export interface Held extends Details {
  readonly node: Node
  readonly token: bigint
  /** The version of the node, which counts changes of the note. */
  readonly version: number
}

/** What the rules grant. `version` is the version of the data of the name that the decision is based on. */
export interface Granted {
  readonly slots: readonly number[]
  /** The nodes of the waiters that count as passed afterwards. */
  readonly passed: readonly string[]
  readonly version: number
}

/** One request of a claim. */
export interface Asked {
  readonly claim: Claim
  readonly signal: AbortSignal
  /** The time before the request was sent. */
  readonly at: number
}
