import { setTimeout } from 'node:timers/promises'
import { checkKeys, checkSignal, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { assertNotOver, showingOf } from '../fence.ts'
import { compareMarks, type Holder, type Mark, staleToken } from '../mark.ts'
import { type Envelope, seal, unseal } from './envelope.ts'
import type { Objects } from './objects.ts'

export interface ObjectFenceOptions {
  /** Compared before the token, for when leases have moved to another store. @default 0 */
  readonly lineage?: number | undefined
  /** How often a write is tried that others come before: two requests each. @default 15 */
  readonly attempts?: number | undefined
}

export interface ObjectCallOptions {
  readonly signal?: AbortSignal | undefined
}

/** What `get` answers. */
export interface FencedObject {
  readonly body: Uint8Array
  /** Of the last writer; `undefined` if the object was never fenced. */
  readonly mark: Mark | undefined
}

/** Objects that refuse older holders. A key is a URL, or whatever `objects` takes. */
export interface ObjectFence {
  /**
   * Replaces the object, or makes it, in two requests if nobody comes between: a read and a write on condition.
   * @throws LeaseError STALE_TOKEN if a newer holder has written or touched; LEASE_LOST, MAX_HOLD or CLOSED if the lease
   *   is over in this process; OUTCOME_UNKNOWN if no answer came to
   *   two tries: put it again; STORE_UNAVAILABLE; INVALID_ARGUMENT
   */
  put(key: string, body: string | Uint8Array, lease: Holder, options?: ObjectCallOptions): Promise<void>
  /**
   * Refuses all older holders from now on, before the first write: after this, what is read is what no older holder will
   * replace. It writes the object as it was, with the new mark.
   * @throws LeaseError as `put`
   */
  touch(key: string, lease: Holder, options?: ObjectCallOptions): Promise<void>
  /** What was put last; `undefined` if nothing was. An object that was never fenced is answered as it is. */
  get(key: string, options?: ObjectCallOptions): Promise<FencedObject | undefined>
  /** The marks themselves. */
  readonly marks: ObjectMarks
}

/**
 * Marks of objects. Each is in its object, so that the service lists them, they cannot add up, and whoever deletes an
 * object forgets its mark.
 */
export interface ObjectMarks {
  /** That of one object, also if it was touched and not written yet; `undefined` if it has none. */
  get(key: string, options?: ObjectCallOptions): Promise<Mark | undefined>
  /**
   * Begins the next lineage of an object, which stays as it is, and resolves to its number; `undefined` if it has no
   * mark. Refuses every holder of fences with a lower `lineage`, until they are told the new one. Only when no holder of
   * before is at work.
   * @throws LeaseError as `put`; after OUTCOME_UNKNOWN look at the mark, since each call begins another lineage
   */
  advance(key: string, options?: ObjectCallOptions): Promise<number | undefined>
}

/** Milliseconds; about the pause before the second try, twice as long before each further one. */
const FIRST_PAUSE = 5
/** Milliseconds. Apache may call an ETag weak for a second after the write: six of these tries outlast that. */
const LONGEST_PAUSE = 500

/**
 * Fences objects by conditional writes. The token is in the first line of each object, so read it with `get`, or drop
 * that line.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function objectFence(objects: Objects, options: ObjectFenceOptions = {}): ObjectFence {
  checkKeys(options, new Set(['lineage', 'attempts']), 'a fence of objects')
  const { lineage, attempts = 15 } = options
  if (!Number.isInteger(attempts) || attempts < 1)
    throw invalid(`attempts must be a whole number from 1, not ${show(attempts)}`)

  /**
   * Writes what `change` answers to what is there, unless that is `undefined`, until nobody comes between. A write that
   * nobody answered is looked for and made again so many times: a connection that was kept may be closed by its server
   * just then, and a late copy of the write is refused by its ETag.
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
    // The end of the lease does not show what became of an unanswered write. The mark of a newer holder does.
    const changed = (there: Envelope | undefined): Uint8Array | undefined => {
      try {
        return change(there)
      } catch (error) {
        throw unanswered && LeaseError.from(error)?.code !== 'STALE_TOKEN' ? unanswered : error
      }
    }
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await pause(attempt, signal)
      const there = await look(key, signal)
      const bytes = changed(there)
      if (!bytes || (await write(bytes, there?.tag))) return
    }
    const why = 'others wrote between, or its server does not know its own ETag again'
    throw new LeaseError('STORE_UNAVAILABLE', `${show(key)} was refused ${attempts} times: ${why}`)
  }

  /** Without a body the one that is there stays. */
  async function fenced(key: string, lease: Holder, body: Uint8Array | undefined, signal?: AbortSignal): Promise<void> {
    const { mark } = showingOf(lease, { lineage, resource: 'an object' })
    const change = (there: Envelope | undefined): Uint8Array | undefined => {
      const order = there?.mark ? compareMarks(mark, there.mark) : 1
      if (there?.mark && order < 0) throw staleToken(key, mark, there.mark)
      assertNotOver(lease)
      return body || order > 0 ? seal(mark, body ?? there?.body) : undefined
    }
    await replace(key, change, signal, 1)
  }

  async function advance(key: string, signal?: AbortSignal): Promise<number | undefined> {
    let next: number | undefined
    const change = (there: Envelope | undefined): Uint8Array | undefined => {
      next = there?.mark && there.mark.lineage + 1
      return next === undefined ? undefined : seal({ lineage: next, token: 0n }, there?.body)
    }
    await replace(key, change, signal, 0)
    return next
  }

  async function look(key: string, signal?: AbortSignal): Promise<(Envelope & { readonly tag: string }) | undefined> {
    if (typeof key !== 'string' || key === '') throw invalid(`the key of an object must be a string, not ${show(key)}`)
    checkSignal(signal)
    signal?.throwIfAborted()
    const there = await objects.read(key, signal)
    return there && { ...unseal(there.body), tag: there.tag }
  }

  return {
    async put(key, body, lease, { signal } = {}) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      if (!(bytes instanceof Uint8Array)) throw invalid(`the body must be text or a Uint8Array, not ${show(body)}`)
      await fenced(key, lease, bytes, signal)
    },
    touch: (key, lease, { signal } = {}) => fenced(key, lease, undefined, signal),
    async get(key, { signal } = {}) {
      const there = await look(key, signal)
      return there?.body && { body: there.body, mark: there.mark }
    },
    marks: {
      get: async (key, { signal } = {}) => (await look(key, signal))?.mark,
      advance: (key, { signal } = {}) => advance(key, signal),
    },
  }
}

/** Ends early when the signal aborts, which the next request tells. */
async function pause(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  const longest = Math.min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
  await setTimeout(longest * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {})
}
