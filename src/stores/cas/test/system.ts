import { signal } from '../../../../test/support.ts'
import { LeaseError } from '../../../contract/errors.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { VirtualClock } from '../../../testing/clock.ts'
import { cas, type Entry, type Register } from '../index.ts'

/** A system with records, whose time is that of a test. */
export class System implements Register<number> {
  readonly clock: VirtualClock = new VirtualClock()
  readonly records: Map<string, { value: string; version: number; written: number }> = new Map()
  maxBytes = 400_000
  knowsAge = false
  mayLag = false
  watch?: NonNullable<Register<number>['watch']>
  reads = 0
  writes = 0
  keep = 0
  /** What the next writes do, in this order: nothing and fail, or happen and answer otherwise. */
  readonly faults: ('refuses' | 'loses the answer' | 'was repeated')[] = []
  /** Called when a write has happened. */
  onWrite = async (): Promise<void> => {}
  #versions = 0

  isNewer(version: number, other: number): boolean {
    return version > other
  }

  async read(key: string): Promise<Entry<number> | undefined> {
    this.reads += 1
    const found = this.records.get(key)
    return found && { ...found, ...(this.knowsAge && { age: this.clock.now() - found.written }) }
  }

  async write(
    key: string,
    value: string,
    expected: number | undefined,
    _: AbortSignal,
    keep: number,
  ): Promise<number | undefined> {
    this.writes += 1
    this.keep = keep
    const fault = this.faults.shift()
    if (fault === 'refuses') throw new LeaseError('ACCESS_DENIED', 'may not write')
    if (this.records.get(key)?.version !== expected) return undefined
    this.#versions += 1
    const version = this.#versions
    this.records.set(key, { value, version, written: this.clock.now() })
    await this.onWrite()
    if (fault === 'loses the answer') throw new Error('the connection was reset')
    return fault === 'was repeated' ? undefined : version
  }

  async *list(prefix: string): AsyncIterable<{ key: string }> {
    for (const key of this.records.keys()) if (key.startsWith(prefix)) yield { key }
  }

  /** A new process, whose clock shows another time than the others. */
  start(): Store {
    const { clock } = this
    const offset = Math.random() * 1e9
    return cas(this, {
      clock: {
        now: () => clock.now() + offset,
        wall: () => clock.wall(),
        after: (delay, action) => clock.after(delay, action),
      },
    })
  }
}

/** Asks once: does the claim hold? */
export async function held(store: Store, claim: Claim): Promise<boolean> {
  return (await store.acquire(claim, signal)).held
}

/** Lets time pass, and all that happens meanwhile, which takes some turns of the event loop. */
export async function pass(system: System, ms: number, step = 10): Promise<void> {
  for (let passed = 0; passed < ms; passed += step) {
    await system.clock.advance(step)
    for (let turns = 0; turns < 3; turns += 1) await new Promise(resolve => setImmediate(resolve))
  }
}

/** The answer to a request, for which time passes. */
export async function meanwhile<Answer>(system: System, answer: Promise<Answer>): Promise<Answer> {
  let isOver = false
  answer.catch(() => {}).finally(() => (isOver = true))
  while (!isOver) await pass(system, 10)
  return answer
}
