import { checkDuration, checkKeys, checkText, invalid, show } from '../../contract/check.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { driverOf } from '../../stores/redis/driver.ts'
import { checkFence, type FenceOptions, type KeptMarks, showingOf } from '../fence.ts'
import type { Holder } from '../mark.ts'
import { Connection } from './connection.ts'
import { MarkKeys } from './keys.ts'
import { RedisMarks } from './marks.ts'
import { guarded, raise, type Script, set } from './script.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from '../../stores/redis/client.ts'
export type { FenceOptions, KeptMarks, MarkRecord } from '../fence.ts'
export type { Holder, Mark, Marks } from '../mark.ts'

export interface RedisFenceOptions extends FenceOptions {
  /** What the keys of marks begin with, after the key prefix of the client if it has one. @default 'holdfast' */
  readonly prefix?: string | undefined
}

export interface FencedSetOptions {
  /** Milliseconds after which Redis forgets the value. @default never */
  readonly ttl?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** What a guarded script works on. */
export interface FencedScript {
  /** In Lua; `KEYS` and `ARGV` are those below. If it fails halfway, Redis keeps what it did until then. */
  readonly script: string
  /** At least one; several share a hash tag, as in `{invoices}:1` and `{invoices}:2`. */
  readonly keys: readonly string[]
  /** @default [] */
  readonly args?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Lets the writes of a holder in as long as no newer one was seen. There is one mark for each resource and hash tag (or
 * whole key, where it has none), in the slot of the keys: what is one resource should have one tag. Everything rejects
 * `STALE_TOKEN` if a newer holder was seen, `LEASE_LOST`, `MAX_HOLD` or `CLOSED` if the lease is over in this process,
 * `STORE_UNAVAILABLE`, or `OUTCOME_UNKNOWN` after 5 s without an answer.
 */
export interface RedisFence extends AsyncDisposable {
  /** Shows the token and sets the key, in one step and one round trip. */
  fencedSet(lease: Holder, key: string, value: string, options?: FencedSetOptions): Promise<void>
  /**
   * Shows the token and runs a script, in one step and one round trip. Resolves to what the script returns. Rejects
   * `INVALID_ARGUMENT` with the words of Redis if the script fails.
   */
  fencedEval(lease: Holder, script: FencedScript): Promise<unknown>
  /** Shows the token beside this key without writing: from here on every older holder is refused there. */
  touch(lease: Holder, key: string, signal?: AbortSignal): Promise<void>
  /** Marks for fences elsewhere, and all that are kept here. */
  readonly marks: KeptMarks
  /** Closes the connection of its own. */
  close(): Promise<void>
}

/**
 * A fence before keys of Redis or Valkey 5 or later, one node, Sentinel or Cluster, over a client that you have: ioredis
 * >= 5, iovalkey, node-redis >= 4.7 or valkey-glide >= 2. The client is neither configured nor closed: the fence opens a
 * connection of its own like it when it is first used. Throws `INVALID_ARGUMENT`.
 */
export function redisFence(client: RedisClient, options: RedisFenceOptions = {}): RedisFence {
  checkFence(options, ['prefix'], 'redisFence')
  const { prefix = 'holdfast' } = options
  checkText(prefix, 'the prefix')
  if (prefix === '') throw invalid('the prefix is empty: leave it out, or give some text')
  const driver = driverOf(client, 'redisFence(client)')
  const connection = new Connection(driver)
  const keysOfMarks = new MarkKeys(driver.keyPrefix + prefix)
  const marks = new RedisMarks(connection, keysOfMarks)

  async function carryOut(
    script: Script,
    lease: Holder,
    keys: readonly string[],
    args: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const showing = showingOf(lease, options)
    for (const key of keys) if (typeof key !== 'string') throw invalid(`a key must be a string, not ${show(key)}`)
    for (const arg of args) if (typeof arg !== 'string') throw invalid(`a value must be a string, not ${show(arg)}`)
    const whole = keys.map(key => driver.keyPrefix + key)
    return marks.run(script, showing, [keysOfMarks.beside(showing.resource, whole), ...whole], args, signal)
  }

  return {
    async fencedSet(lease, key, value, { ttl, signal, ...rest } = {}) {
      checkKeys(rest, new Set(['ttl', 'signal']), 'fencedSet')
      if (ttl !== undefined) checkDuration(ttl, 'ttl')
      await carryOut(set, lease, [key], [value, ...(ttl === undefined ? [] : ['PX', String(ttl)])], signal)
    },
    async fencedEval(lease, { script, keys, args = [], signal, ...rest }) {
      checkKeys(rest, new Set(['script', 'keys', 'args', 'signal']), 'fencedEval')
      if (typeof script !== 'string') throw invalid(`script must be the text of a script, not ${show(script)}`)
      if (script.startsWith('#!')) throw invalid('a script that begins with #! cannot be guarded: leave that line out')
      return carryOut(guarded(script), lease, keys, args, signal)
    },
    async touch(lease, key, signal) {
      await carryOut(raise, lease, [key], [], signal)
    },
    marks,
    async close() {
      connection.close()
    },
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}
