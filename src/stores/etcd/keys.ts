import { createHash } from 'node:crypto'

/** Keys from `key` up to `range_end`, as etcd wants them. */
export interface Range {
  readonly key: string
  readonly range_end: string
}

// Neither prefixes nor names have control characters, so that no key of one name or prefix is another's, and the line
// of `a` does not contain that of `a/b`.
const TAB = '\t'

/** The keys of one store, in base64 as the gateway wants them. */
export class Keys {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix + TAB
  }

  /** Is there while somebody holds the name; its create revision is the token. */
  held(name: string): string {
    return base64(`${this.#prefix}${name}${TAB}held`)
  }

  /** The place in line of a claim; the order of create revisions is the line. */
  place(name: string, id: string): string {
    return base64(`${this.#prefix}${name}${TAB}line${TAB}${id}`)
  }

  queue(name: string): Range {
    return startingWith(`${this.#prefix}${name}${TAB}line${TAB}`)
  }

  /** The holder and the line. */
  all(name: string): Range {
    return startingWith(`${this.#prefix}${name}${TAB}`)
  }

  /** Those of all names that begin with `start`. */
  names(start: string): Range {
    const range = startingWith(this.#prefix + start)
    return start === '' ? { ...range, key: base64(`${this.#prefix} `) } : range // after the claims that are gone
  }

  /** That a claim was withdrawn before it arrived: the name of none is empty. */
  gone(id: string): string {
    return base64(this.#prefix + TAB + id)
  }

  /** Written when a claim leaves a lease that others may be on later; says whose that was. */
  left(lease: string): string {
    return base64(`${this.#prefix}${TAB}left${TAB}${lease}`)
  }

  /** What `held`, or `place` and so with an id, made. */
  parse(key: string): { readonly name: string; readonly id: string | undefined } {
    const [name = '', , id] = Buffer.from(key, 'base64').toString().slice(this.#prefix.length).split(TAB)
    return { name, id }
  }
}

/** The first key after `key`. */
export function after(key: string): string {
  return Buffer.concat([Buffer.from(key, 'base64'), Buffer.alloc(1)]).toString('base64')
}

/**
 * The etcd lease of a claim: the same for each request of the claim, so that a repeated one is the same claim, and
 * another for another ttl, which etcd cannot change. What is held at the revision `changed` moves to a lease that it
 * never was on: a late request that ends a former one must not find it there again.
 */
export function leaseOf(id: string, seconds: number, changed?: string): string {
  const text = changed === undefined ? `${id} ${seconds}` : `${id} ${seconds} ${changed}`
  const bits = createHash('sha256').update(text).digest().readBigUInt64BE()
  return ((bits >> 1n) | 1n).toString() // neither negative nor 0, which means none
}

/** The ttl in the whole seconds that etcd counts in. */
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
