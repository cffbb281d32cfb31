import { invalid } from '../../contract/check.ts'

// A constant first character inside the braces. Without it, a name such as `}` would leave the hash tag empty, and Redis
// Cluster would spread the keys of that name over its nodes.
const OPEN = ':{:'
const CLOSE = '}'

/** The suffixes of the keys of claims that share a name, and of its queue. */
export const CLAIMS: readonly string[] = [':line', ':lapse', ':claim']

/**
 * The keys of one store. The keys of a name begin with its `lease` key, share a hash tag, and differ from those of any
 * other name.
 */
export class Keys {
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
    if (hashTag(this.lease('')) === undefined)
      throw invalid(`the prefix ${JSON.stringify(prefix)} has an empty pair of braces: remove it`)
  }

  /** The key of the lease itself. The other keys append `:line`, `:lapse` and so on, which contain no closing brace. */
  lease(name: string): string {
    return this.prefix + OPEN + name + CLOSE
  }

  /** The key of the highest token that a server has given to any name. */
  get counter(): string {
    return `${this.prefix}:token`
  }

  /** The name that a key belongs to. `undefined`: it is not a key of this store. */
  nameOf(key: string): string | undefined {
    const start = this.prefix.length + OPEN.length
    const end = key.lastIndexOf(CLOSE)
    return key.startsWith(this.prefix + OPEN) && end >= start ? key.slice(start, end) : undefined
  }

  /** The SCAN pattern that matches every key of the names that begin with `start`. */
  pattern(start: string): string {
    return `${(this.prefix + OPEN + start).replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`
  }

  channel(process: string): string {
    return `${this.prefix.replaceAll(' ', '%20')}:wake:${process}` // it is stored as one word
  }
}

/** The hash tag of a key: the text between the first `{` and the first `}` after it. `undefined`: the key has none. */
export function hashTag(key: string): string | undefined {
  const start = key.indexOf('{')
  const end = key.indexOf('}', start + 1)
  return start >= 0 && end > start + 1 ? key.slice(start + 1, end) : undefined
}

/** The hash slot of a key in Redis Cluster: CRC16 (XMODEM) of its hash tag, modulo 16,384. */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashTag(key) ?? key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return crc & 0x3fff
}
