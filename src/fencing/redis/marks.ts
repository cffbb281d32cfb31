import { checkText } from '../../contract/check.ts'
import {
  abortable,
  checkAge,
  checkMark,
  checkResource,
  type KeptMarks,
  type MarkRecord,
  type Presented,
} from '../fence.ts'
import { type Mark, staleToken } from '../mark.ts'
import { type Connection, scriptFailed } from './connection.ts'
import type { MarkKeys } from './keys.ts'
import { advance, raise, remove, type Script } from './script.ts'

interface Kept extends MarkRecord {
  readonly key: string
  /** The stored value. */
  readonly text: string
}

/** The marks under one prefix. */
export class RedisMarks implements KeptMarks {
  readonly #connection: Connection
  readonly #keys: MarkKeys

  constructor(connection: Connection, keys: MarkKeys) {
    this.#connection = connection
    this.#keys = keys
  }

  async raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void> {
    checkResource(resource)
    checkMark(mark)
    await this.run(raise, [{ resource, mark }], [this.#keys.own(resource)], [], signal)
  }

  async list(prefix = ''): Promise<readonly MarkRecord[]> {
    return (await this.#kept(prefix)).map(({ key: _key, text: _text, ...record }) => record)
  }

  async advance(resource: string): Promise<number | undefined> {
    checkResource(resource)
    for (;;) {
      const parts = (await this.#kept(resource)).filter(({ resource: found }) => found === resource)
      if (parts.length === 0) return undefined
      // All parts begin the same epoch. One that is behind would accept what the others refuse.
      const next = Math.max(...parts.map(({ epoch }) => epoch)) + 1
      let isBegun = false // not if somebody else began it meanwhile
      for (const { key } of parts) {
        const [, isSet] = (await this.#connection.run(advance, [key], [String(next)])) as [unknown, unknown]
        isBegun ||= isSet !== undefined
      }
      if (isBegun) return next
    }
  }

  async prune(olderThan: number, prefix = ''): Promise<number> {
    checkAge(olderThan)
    let pruned = 0
    for (const { key, text, raisedAt } of await this.#kept(prefix)) {
      if (raisedAt >= Date.now() - olderThan) continue
      const [, removed] = (await this.#connection.run(remove, [key], [text])) as [unknown, unknown]
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
    signal?: AbortSignal,
  ): Promise<unknown> {
    signal?.throwIfAborted()
    const shown = presented.flatMap(({ mark }) => [String(mark.epoch), String(mark.token)])
    const all = [String(presented.length), ...shown, ...args]
    const reply = await abortable(this.#connection.run(script, keys, all), signal)
    const [done, answer, index = 1] = reply as [unknown, unknown, unknown?]
    if (Number(done) === 1) return answer
    if (Number(done) === 2) throw scriptFailed(String(answer))
    const { resource, mark } = presented[Number(index) - 1] as Presented
    throw staleToken(resource, mark, parse(String(answer)) ?? mark)
  }

  async #kept(prefix: string): Promise<Kept[]> {
    checkText(prefix, 'the prefix')
    const found: Kept[] = []
    for (const pattern of this.#keys.patterns) {
      for (const key of await this.#connection.scan(pattern)) {
        const read = this.#keys.read(key)
        if (!read?.resource.startsWith(prefix)) continue
        const text = String(await this.#connection.get(key))
        const mark = parse(text)
        if (mark) found.push({ ...read, ...mark, key, text })
      }
    }
    return found
  }
}

function parse(text: string): (Mark & { raisedAt: number }) | undefined {
  const [, epoch, token, time] = /^(\d+):(\d+):(\d+)$/.exec(text) ?? []
  if (epoch === undefined || token === undefined) return undefined
  return { epoch: Number(epoch), token: BigInt(token), raisedAt: Number(time) }
}
