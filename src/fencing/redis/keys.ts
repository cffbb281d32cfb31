import { invalid, show } from '../../contract/check.ts'
import { hashTag, slotOf } from '../../stores/redis/keys.ts'

/** The keys of marks. */
export class MarkKeys {
  readonly #own: string
  readonly #shared: string

  constructor(prefix: string) {
    this.#own = `${prefix}:mark:`
    this.#shared = `${prefix}:fence:{`
  }

  /** Of a resource that is elsewhere. */
  own(resource: string): string {
    return this.#own + resource
  }

  /**
   * Of a resource whose data are these keys: in their slot, so that Redis changes both in one step. Throws
   * `INVALID_ARGUMENT` for keys that do not share a hash tag, also where there is no cluster yet.
   */
  beside(resource: string, keys: readonly string[]): string {
    const [first] = keys
    if (first === undefined) throw invalid('a fenced script names no key: what it guards is known by its keys')
    const tag = hashTag(first) ?? first
    const mark = `${this.#shared}${tag}}:${resource}`
    for (const key of keys) {
      if (key !== first && hashTag(key) !== tag)
        throw invalid(
          `the keys ${show(first)} and ${show(key)} need not be at one server, and so cannot share a mark: ` +
            'give them a hash tag, as in {invoices}:1 and {invoices}:2',
        )
    }
    if (slotOf(mark) !== slotOf(first))
      throw invalid(
        `no mark can be kept beside the key ${show(first)}: give it a hash tag, as in {invoices}:1, ` +
          'and the prefix no braces',
      )
    return mark
  }

  /** Matches, for SCAN, every mark. */
  get patterns(): string[] {
    return [this.#own, this.#shared].map(start => `${start.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`)
  }

  /** What a key is the mark of. */
  read(key: string): { resource: string; part?: string } | undefined {
    if (key.startsWith(this.#own)) return { resource: key.slice(this.#own.length) }
    if (!key.startsWith(this.#shared)) return undefined
    const end = key.indexOf('}:', this.#shared.length)
    return end < 0 ? undefined : { resource: key.slice(end + 2), part: key.slice(this.#shared.length, end) }
  }
}
