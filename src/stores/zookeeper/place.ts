import type { Claim } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Node } from './nodes.ts'
import type { Paths } from './paths.ts'
import type { Acl } from './protocol.ts'
import type { Details } from './record.ts'
import type { Ensemble } from './session.ts'

/** A claim that has a node of this session, or may have one. */
export interface Place {
  readonly name: string
  readonly id: string
  /** As it asked last. */
  claim: Claim
  /** `undefined` while the outcome of a request is unknown, after two nodes were found, and after a sweep deleted it. */
  node: Node | undefined
  /** The transaction that created the node. */
  czxid: bigint
  /** Only for a claim that holds. */
  token: bigint | undefined
  /** The node directly before it, whose end wakes it. */
  behind: Node | undefined
  /** Not aborted while it waits to be woken. */
  watch: AbortSignal | undefined
  /** By the clock. After that the claim is abandoned. */
  until: number
  /** Is it being withdrawn? */
  isLeaving: boolean
}

/** A claim that holds, through any session: its node, and what that contains. */
export interface Held extends Details {
  readonly node: Node
  readonly token: bigint
  /** The version of the node, which counts changes of the note. */
  readonly version: number
}

/** What the rules grant, and the version of the data of the name for which they decided. */
export interface Granted {
  readonly slots: readonly number[]
  /** The positions of the waiters that are passed then. */
  readonly passed: readonly number[]
  readonly version: number
}

/** One request of a claim. */
export interface Asked {
  readonly claim: Claim
  readonly signal: AbortSignal
  /** By the clock, before the request was sent. */
  readonly at: number
}

/** What all groups have in common. */
export interface Settings {
  readonly ensemble: Ensemble
  readonly paths: Paths
  readonly acl: Acl
  readonly clock: Clock
}
