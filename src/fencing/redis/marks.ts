import { LeaseError } from '../../contract/errors.ts'
import type { Presented } from '../fence.ts'
import { type Mark, staleToken } from '../mark.ts'
import type { MarkRecord, MarkTable } from '../marks.ts'
import { isAlone, keysOf, NAME } from '../rule.ts'
import { type Connection, scriptFailed } from './connection.ts'
import type { MarkKeys } from './keys.ts'
import { advance, prune, raise, read, type Script } from './script.ts'

/** A key, and the resource whose marks it holds. */
interface Kept {
  readonly key: string
  readonly records: readonly MarkRecord[]
}

/** The marks under one prefix. */
export class RedisMarks implements MarkTable {
  readonly #connection: Connection
  readonly #keys: MarkKeys

  constructor(connection: Connection, keys: MarkKeys) {
    this.#connection = connection
    this.#keys = keys
  }

  async raise(presented: readonly Presented[]): Promise<void> {
    const keys = presented.map(({ resource }) => this.#keys.own(resource))
    await this.run(raise, presented, keys, [])
  }

  async list(prefix: string): Promise<readonly MarkRecord[]> {
    return (await this.#kept(prefix)).flatMap(({ records }) => records)
  }

  async advance(resource: string): Promise<number | undefined> {
    for (;;) {
      const parts = (await this.#kept(resource)).filter(({ records }) => records[0]?.resource === resource)
      if (parts.length === 0) return undefined
      // All parts begin the same epoch. One that is behind would accept what the others refuse.
      const next = 1 + Math.max(...parts.flatMap(({ records }) => records.map(({ epoch }) => epoch)))
      let isBegun = false // false if somebody else began the epoch meanwhile
      for (const { key } of parts) {
        const [, isSet] = (await this.#connection.run(advance, [key], [String(next)])) as [unknown, unknown]
        isBegun ||= isSet !== undefined
      }
      if (isBegun) return next
    }
  }

  async prune(olderThan: number, prefix: string): Promise<number> {
    let pruned = 0
    for (const { key } of await this.#kept(prefix)) {
      const [, removed] = (await this.#connection.run(prune, [key], [String(olderThan)])) as [unknown, unknown]
      pruned += Number(removed)
    }
    return pruned
  }

  /** Runs a script that raises the marks in its first keys, or refuses. */
  async run(
    script: Script,
    presented: readonly Presented[],
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const shown = presented.flatMap(({ mark }) => {
      return [String(mark.epoch), String(mark.token), isAlone(mark) ? '' : keysOf(mark).join('+')]
    })
    const all = [String(presented.length), ...shown, ...args]
    const [done, answer, index = 1] = (await this.#connection.run(script, keys, all)) as [unknown, unknown, unknown?]
    if (Number(done) === 1) return answer
    if (Number(done) === 2) throw scriptFailed(String(answer))
    if (Number(done) === 3) throw foreign(String(answer))
    const { resource, mark } = presented[Number(index) - 1] as Presented
    throw staleToken(resource, mark, parse(String(answer)) ?? mark)
  }

  async #kept(prefix: string): Promise<Kept[]> {
    const found: Kept[] = []
    for (const pattern of this.#keys.patterns) {
      for (const key of await this.#connection.scan(pattern)) {
        const of = this.#keys.read(key)
        if (!of?.resource.startsWith(prefix)) continue
        const [, fields] = (await this.#connection.run(read, [key], [])) as [unknown, unknown[]]
        const records = recordsOf(fields.map(String)).map(record => ({ ...of, ...record }))
        if (records.length > 0) found.push({ key, records })
      }
    }
    return found
  }
}

/** Converts the fields of a hash to records, sorted by slot. */
function recordsOf(fields: readonly string[]): Omit<MarkRecord, 'resource'>[] {
  const slots = fields.filter((_, index) => index % 2 === 0)
  const records = slots.flatMap((slot, index) => {
    const mark = parse(fields[2 * index + 1] ?? '')
    return mark ? [{ ...(slot !== NAME && { slot }), ...mark }] : []
  })
  return records.sort((one, other) => ((one.slot ?? NAME) < (other.slot ?? NAME) ? -1 : 1))
}

function parse(text: string): (Mark & { raisedAt: number }) | undefined {
  const [, epoch, token, time] = /^(\d+):(\d+):(\d+)$/.exec(text) ?? []
  if (epoch === undefined || token === undefined) return undefined
  return { epoch: Number(epoch), token: BigInt(token), raisedAt: Number(time) }
}

function foreign(key: string): LeaseError {
  const cure = 'use the same version of Holdfast everywhere, or give another prefix'
  return new LeaseError('FORMAT_MISMATCH', `the key ${key} holds no marks, or those of another version: ${cure}`)
}
