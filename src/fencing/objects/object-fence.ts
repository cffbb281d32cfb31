import { setTimeout } from 'node:timers/promises'
import { checkKeys, checkWhole, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { backoff, type Pauses } from '../../contract/request.ts'
import { assertNotEnded, type FenceCallOptions, markOfLease, signalOf } from '../fence.ts'
import { compareMarks, type Holder, type Mark, staleToken } from '../mark.ts'
import { type Envelope, seal, unseal } from './envelope.ts'
import { type Objects, withoutSecrets } from './objects.ts'

export interface ObjectFenceOptions {
  /** The epoch, which is compared before the token. Raise it after leases have moved to another store. @default 0 */
  readonly epoch?: number | undefined
  /** The most attempts at a write while others change the object. Each attempt takes two requests. @default 15 */
  readonly attempts?: number | undefined
}

/** An object as `get` returns it. */
export interface FencedObject {
  readonly body: Uint8Array
  /** The mark of the last writer. `undefined` if the object was never fenced. */
  readonly mark: Mark | undefined
}

/** Objects that refuse older holders. A key is what `objects` takes, such as a URL. */
export interface ObjectFence {
  /**
   * Creates or replaces the object. Takes two requests unless others change it meanwhile: a read and a conditional write.
   * @throws LeaseError STALE_TOKEN if a newer holder has written or touched it; LEASE_LOST, MAX_HOLD or CLOSED if the
   *   lease has ended in this process; OUTCOME_UNKNOWN if a write got no answer, and the next attempt did
   *   not succeed: put it again; STORE_UNAVAILABLE; INVALID_ARGUMENT
   */
  put(lease: Holder, key: string, body: string | Uint8Array, options?: FenceCallOptions): Promise<void>
  /**
   * Refuses all older holders from now on. Read the object after this: no older holder will replace what you read. It
   * writes the same body with the new mark.
   * @throws LeaseError as `put`
   */
  touch(lease: Holder, key: string, options?: FenceCallOptions): Promise<void>
  /** Reads the object without its mark. `undefined` if it is missing. An object that was never fenced stays as it is. */
  get(key: string, options?: FenceCallOptions): Promise<FencedObject | undefined>
  /** The marks of the objects. */
  readonly marks: ObjectMarks
}

/** The marks of objects. Each is stored in its object: deleting the object deletes the mark. */
export interface ObjectMarks {
  /** Reads the mark of one object, even if it was touched but not yet written. `undefined` if it has no mark. */
  get(key: string, options?: FenceCallOptions): Promise<Mark | undefined>
  /**
   * Begins the next epoch of an object and resolves to its number. `undefined`: the object has no mark. The body does not
   * change. From then on every fence with a lower `epoch` is refused. Before you call it, make sure that no earlier holder
   * is still running.
   * @throws LeaseError as `put`. After OUTCOME_UNKNOWN read the mark, because each call begins another epoch.
   */
  advance(key: string, options?: FenceCallOptions): Promise<number | undefined>
}

/** The pauses between attempts. Apache may mark an ETag as weak for a second after the write. Six pauses take longer. */
const PAUSES: Pauses = [5, 500]

/**
 * Fences objects by conditional writes. The first line of each object is its mark, so read objects with `get`, or skip
 * that line.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function objectFence(objects: Objects, options: ObjectFenceOptions = {}): ObjectFence {
  checkKeys(options, new Set(['epoch', 'attempts']), 'a fence of objects')
  const { epoch, attempts = 15 } = options
  checkWhole(attempts, 'attempts', 1)

  /**
   * Writes what `change` returns for the current object, and starts over if another write came between. `undefined` from
   * `change` means that nothing has to be written. A write without an answer is repeated up to `repeats` times after the
   * object was read again: its server may just have closed an idle connection. A stale copy of the write is refused by
   * its ETag.
   */
  async function replace(
    key: string,
    change: (there: Envelope | undefined) => Uint8Array | undefined,
    signal: AbortSignal | undefined,
    repeats: number,
  ): Promise<void> {
    let unanswered: LeaseError | undefined
    const write = async (bytes: Uint8Array, tag: string | undefined): Promise<boolean> => {
      try {
        return await objects.write(key, bytes, tag, signal)
      } catch (error) {
        repeats -= 1
        if (!LeaseError.is(error) || error.code !== 'OUTCOME_UNKNOWN' || repeats < 0) throw error
        unanswered = error
        return false
      }
    }
    try {
      for (let attempt = 0; attempt < attempts; attempt++) {
        if (attempt > 0) await pause(attempt, signal)
        const there = await look(key, signal)
        const bytes = change(there)
        if (!bytes || (await write(bytes, there?.tag))) return
      }
      const why = 'other writers came first, or its server does not recognise its own ETag'
      throw new LeaseError(
        'STORE_UNAVAILABLE',
        `the write of ${show(withoutSecrets(key))} was refused ${attempts} times: ${why}`,
      )
    } catch (error) {
      // What fails later says nothing about the outcome of an unanswered write. The mark of a newer holder does.
      const isTold = LeaseError.from(error)?.code === 'STALE_TOKEN' || (signal?.aborted && error === signal.reason)
      throw unanswered && !isTold ? unanswered : error
    }
  }

  /** Writes an object with its mark. `body`: `undefined` keeps the current body. */
  async function fenced(lease: Holder, key: string, body: Uint8Array | undefined, signal?: AbortSignal): Promise<void> {
    const mark = markOfLease(lease, { epoch, resource: 'an object' }, 'an object')
    const change = (there: Envelope | undefined): Uint8Array | undefined => {
      const order = there?.mark ? compareMarks(mark, there.mark) : 1
      if (there?.mark && order < 0) throw staleToken(withoutSecrets(key), mark, there.mark)
      assertNotEnded(lease)
      return body || order > 0 ? seal(mark, body ?? there?.body) : undefined
    }
    await replace(key, change, signal, 1)
  }

  async function advance(key: string, signal?: AbortSignal): Promise<number | undefined> {
    let next: number | undefined
    const change = (there: Envelope | undefined): Uint8Array | undefined => {
      next = there?.mark && there.mark.epoch + 1
      return next === undefined ? undefined : seal({ epoch: next, token: 0n }, there?.body)
    }
    await replace(key, change, signal, 0)
    return next
  }

  async function look(key: string, signal?: AbortSignal): Promise<(Envelope & { readonly tag: string }) | undefined> {
    if (typeof key !== 'string' || key === '')
      throw invalid(`the key of an object must be a string that is not empty, not ${show(key)}`)
    signal?.throwIfAborted()
    const there = await objects.read(key, signal)
    return there && { ...unseal(there.body), tag: there.tag }
  }

  return {
    async put(lease, key, body, call) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      if (!(bytes instanceof Uint8Array)) throw invalid(`the body must be text or a Uint8Array, not ${show(body)}`)
      await fenced(lease, key, bytes, signalOf(call, 'put'))
    },
    touch: async (lease, key, call) => fenced(lease, key, undefined, signalOf(call, 'touch')),
    async get(key, call) {
      const there = await look(key, signalOf(call, 'get'))
      return there?.body && { body: there.body, mark: there.mark }
    },
    marks: {
      get: async (key, call) => (await look(key, signalOf(call, 'get')))?.mark,
      advance: async (key, call) => advance(key, signalOf(call, 'advance')),
    },
  }
}

/** Ends early when the signal aborts. The next request then rejects. */
async function pause(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  await setTimeout(backoff(attempt, Math.random, PAUSES), undefined, { signal }).catch(() => {})
}
