import { checkDuration, checkKeys, checkSignal, invalid, show } from '../../contract/check.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { driverOf } from '../../stores/redis/driver.ts'
import { checkPrefix } from '../../stores/url/options.ts'
import { abortable, checkFence, type FenceCallOptions, type FenceOptions, presentedByAll, signalOf } from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import { type KeptMarks, keptMarks } from '../marks.ts'
import { Connection } from './connection.ts'
import { MarkKeys } from './keys.ts'
import { RedisMarks } from './marks.ts'
import { guarded, raise, type Script, set } from './script.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from '../../stores/redis/client.ts'
export type { FenceCallOptions, FenceOptions } from '../fence.ts'
export type { Holder, Holders, Mark, Marks, Shown } from '../mark.ts'
export type { KeptMarks, MarkRecord } from '../marks.ts'

export interface RedisFenceOptions extends FenceOptions {
  /** The prefix of the keys of marks. It follows the key prefix of the client. @default 'holdfast' */
  readonly prefix?: string | undefined
}

export interface FenceSetOptions extends FenceCallOptions {
  /** Milliseconds for which Redis keeps the value. @default for ever */
  readonly ttl?: number | undefined
}

/** A script to run behind the fence. */
export interface FenceScript {
  /** The script in Lua. `KEYS` and `ARGV` are `keys` and `args`. If it fails halfway, Redis keeps the changes so far. */
  readonly script: string
  /** One key or more. Several keys must share a hash tag, as in `{invoices}:1` and `{invoices}:2`. */
  readonly keys: readonly string[]
  /** The arguments, which the script finds in `ARGV`. @default [] */
  readonly args?: readonly string[] | undefined
}

/**
 * Accepts the writes of a holder as long as the fence has seen no newer one. There is one mark per resource and hash tag,
 * or per resource and key where the key has no tag. The mark is in the slot of the keys. Give all keys of one resource the
 * same tag. Those of a set of leases are all in that slot, and rise together or not at all. Every call rejects with:
 *
 * - `STALE_TOKEN`: a newer holder was seen.
 * - `LEASE_LOST`, `MAX_HOLD`, `CLOSED`: the lease has ended in this process.
 * - `STORE_UNAVAILABLE`: Redis cannot serve the request.
 * - `OUTCOME_UNKNOWN`: no answer came within 5 s.
 */
export interface RedisFence extends AsyncDisposable {
  /** Checks the token and sets the key, atomically and in one round trip. */
  set(lease: Holder | Holders, key: string, value: string, options?: FenceSetOptions): Promise<void>
  /**
   * Checks the token and runs a script, atomically and in one round trip. Resolves to what the script returns. Rejects
   * `INVALID_ARGUMENT` with the text of Redis if the script fails.
   */
  eval(lease: Holder | Holders, script: FenceScript, options?: FenceCallOptions): Promise<unknown>
  /** Refuses every older holder from now on, for the hash tag of this key. Does not write the key. */
  touch(lease: Holder | Holders, key: string, options?: FenceCallOptions): Promise<void>
  /** All marks under the prefix. Other fences can keep theirs here. */
  readonly marks: KeptMarks
  /** Closes the fence's own connection. */
  close(): Promise<void>
}

const setKeys = new Set(['ttl', 'signal'])

/**
 * A fence for the keys of Redis 5 or later, or of Valkey: a single node, Sentinel or Cluster. `client` is one of yours:
 * ioredis >= 5, iovalkey, node-redis >= 4.7 or valkey-glide >= 2. It is neither configured nor closed. At its first use the
 * fence opens its own connection with the same settings. Throws `INVALID_ARGUMENT`.
 */
export function redisFence(client: RedisClient, options: RedisFenceOptions = {}): RedisFence {
  checkFence(options, ['prefix'], 'redisFence')
  const { prefix = 'holdfast' } = options
  checkPrefix(prefix)
  const driver = driverOf(client, 'redisFence(client)')
  const connection = new Connection(driver)
  const keysOfMarks = new MarkKeys(driver.keyPrefix + prefix)
  const marks = new RedisMarks(connection, keysOfMarks)

  async function carryOut(
    script: Script,
    lease: Holder | Holders,
    keys: readonly string[],
    args: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const presented = presentedByAll(lease, options)
    for (const key of keys) if (typeof key !== 'string') throw invalid(`a key must be a string, not ${show(key)}`)
    for (const arg of args) if (typeof arg !== 'string') throw invalid(`a value must be a string, not ${show(arg)}`)
    const whole = keys.map(key => driver.keyPrefix + key)
    const markKeys = presented.map(({ resource }) => keysOfMarks.nextTo(resource, whole))
    return abortable(() => marks.run(script, presented, [...markKeys, ...whole], args), signal)
  }

  return {
    async set(lease, key, value, call = {}) {
      checkKeys(call, setKeys, 'set')
      const { ttl, signal } = call
      checkSignal(signal)
      if (ttl !== undefined) checkDuration(ttl, 'ttl')
      await carryOut(set, lease, [key], [value, ...(ttl === undefined ? [] : ['PX', String(ttl)])], signal)
    },
    async eval(lease, { script, keys, args = [], ...rest }, call) {
      checkKeys(rest, new Set(['script', 'keys', 'args']), 'a script')
      if (typeof script !== 'string') throw invalid(`script must be Lua in a string, not ${show(script)}`)
      if (script.startsWith('#!')) throw invalid('a script that begins with #! cannot be fenced: remove that line')
      return carryOut(guarded(script), lease, keys, args, signalOf(call, 'eval'))
    },
    async touch(lease, key, call) {
      await carryOut(raise, lease, [key], [], signalOf(call, 'touch'))
    },
    marks: keptMarks(marks),
    async close() {
      connection.close()
    },
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}
