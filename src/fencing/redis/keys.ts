import { invalid, show } from '../../contract/check.ts'
import { hashTag, slotOf } from '../../stores/redis/keys.ts'

/** Names the keys of marks. */
export class MarkKeys {
  readonly #own: string
  readonly #shared: string

  constructor(prefix: string) {
    this.#own = `${prefix}:mark:`
    this.#shared = `${prefix}:fence:{`
  }

  /** The key for a resource that is not in this Redis. */
  own(resource: string): string {
    return this.#own + resource
  }

  /**
   * The key for a resource whose data is in these keys. It is in their slot, so that one script can change all of them.
   * Throws `INVALID_ARGUMENT` for keys that do not share a hash tag, even outside a cluster.
   */
  nextTo(resource: string, keys: readonly string[]): string {
    const [first] = keys
    if (first === undefined)
      throw invalid('a fenced script needs at least one key: its mark is in the slot of the keys')
    const tag = hashTag(first) ?? first
    const mark = `${this.#shared}${tag}}:${resource}`
    for (const key of keys) {
      if (key !== first && hashTag(key) !== tag)
        throw invalid(
          `the keys ${show(first)} and ${show(key)} may be on different servers, so they cannot share a mark: ` +
            'give them the same hash tag, as in {invoices}:1 and {invoices}:2',
        )
    }
    if (slotOf(mark) !== slotOf(first))
      throw invalid(
        `no mark fits into the slot of the key ${show(first)}: give the key a hash tag, as in {invoices}:1, ` +
          'and use no braces in the prefix',
      )
    return mark
  }

  /** The SCAN patterns that match every mark. */
  get patterns(): string[] {
    return [this.#own, this.#shared].map(start => `${start.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`)
  }

  /** The resource and the hash tag whose mark this key is. `undefined` if it is no mark. */
  read(key: string): { resource: string; part?: string } | undefined {
    if (key.startsWith(this.#own)) return { resource: key.slice(this.#own.length) }
    if (!key.startsWith(this.#shared)) return undefined
    const end = key.indexOf('}:', this.#shared.length)
    return end < 0 ? undefined : { resource: key.slice(end + 2), part: key.slice(this.#shared.length, end) }
  }
}
