import { createHash } from 'node:crypto'

/** The keys from `key` up to `range_end`, in etcd's format. */
export interface Range {
  readonly key: string
  readonly range_end: string
}

// Neither prefixes nor names have control characters, so no two names or prefixes share a key, and the
// queue of `a` does not contain that of `a/b`.
const TAB = '\t'

/** The keys of one store, in base64 as the gateway requires. */
export class Keys {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix + TAB
  }

  /** The key that exists while the claim holds. Its create revision is the token. */
  held(name: string, id: string): string {
    return base64(`${this.#prefix}${name}${TAB}held${TAB}${id}`)
  }

  holders(name: string): Range {
    return startingWith(`${this.#prefix}${name}${TAB}held${TAB}`)
  }

  /** The key of a claim in the queue. The queue is in the order of create revisions. */
  position(name: string, id: string): string {
    return base64(`${this.#prefix}${name}${TAB}queue${TAB}${id}`)
  }

  queue(name: string): Range {
    return startingWith(`${this.#prefix}${name}${TAB}queue${TAB}`)
  }

  /** The range of the holders and the queue. */
  all(name: string): Range {
    return startingWith(`${this.#prefix}${name}${TAB}`)
  }

  /** The range of the keys of all names that begin with `start`. */
  names(start: string): Range {
    const range = startingWith(this.#prefix + start)
    return start === '' ? { ...range, key: base64(`${this.#prefix} `) } : range // the tombstones come before these
  }

  /** The tombstone of a withdrawn claim. It has an empty name, which no lease has. */
  gone(id: string): string {
    return base64(this.#prefix + TAB + id)
  }

  /** The key that records which claim last left a pooled lease. */
  left(lease: string): string {
    return base64(`${this.#prefix}${TAB}left${TAB}${lease}`)
  }

  /** Parses a key that `held` or `position` has made. */
  parse(key: string): { readonly name: string; readonly isHeld: boolean; readonly id: string } {
    const [name = '', kind, id = ''] = Buffer.from(key, 'base64').toString().slice(this.#prefix.length).split(TAB)
    return { name, isHeld: kind === 'held', id }
  }
}

/** Returns the first key after `key`. */
export function after(key: string): string {
  return Buffer.concat([Buffer.from(key, 'base64'), Buffer.alloc(1)]).toString('base64')
}

/**
 * The id of the etcd lease of a claim. It is the same in each request of the claim, which makes them idempotent. Another
 * ttl needs another lease, because etcd cannot change the ttl of a lease. A key of the revision `changed` moves to a lease
 * that it never had, so that a stale request that revokes a former lease does not delete the key.
 */
export function leaseOf(id: string, seconds: number, changed?: string): string {
  const text = changed === undefined ? `${id} ${seconds}` : `${id} ${seconds} ${changed}`
  const bits = createHash('sha256').update(text).digest().readBigUInt64BE()
  return ((bits >> 1n) | 1n).toString() // neither negative nor 0, which means no lease
}

/** The ttl in seconds, rounded up, because etcd counts in seconds. */
export function secondsOf(ttl: number): number {
  return Math.ceil(ttl / 1_000)
}

function startingWith(start: string): Range {
  const end = Buffer.from(start)
  const last = end.length - 1
  end[last] = (end[last] as number) + 1 // no byte of UTF-8 is 255
  return { key: base64(start), range_end: end.toString('base64') }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
