import type { Entry, Register } from '../../../src/stores/cas/index.ts'
import type { Machine } from '../machine.ts'
import type { Network } from '../network.ts'
import type { World } from '../world.ts'

/** Deliberate mistakes of a register, which the checks must find. */
export interface Flaw {
  /** It says that each record is older by so many ms. */
  readonly tooOld?: number
  /** It writes whatever the version is. */
  readonly ignoresVersions?: boolean
}

/** What a register knows and does. Ages have a resolution of `resolution` ms; `undefined`: they are not known. */
interface Nature extends Flaw {
  readonly resolution?: number | undefined
  readonly watches: boolean
}

/** Records in true time. */
export class Records {
  readonly #world: World
  readonly #nature: Nature
  readonly #records = new Map<string, { value: string; version: number; written: number }>()
  readonly #changed = new Map<string, Set<() => void>>()
  #versions = 0

  constructor(world: World, nature: Nature) {
    this.#world = world
    this.#nature = nature
  }

  /** The register of one process. What it sends may be lost, late or copied. */
  of(machine: Machine, network: Network): Register<number> {
    const { resolution, watches } = this.#nature
    return {
      maxBytes: 400_000,
      knowsAge: resolution !== undefined,
      read: key => network.exchange(machine, async () => this.#read(key)),
      write: (key, value, expected) => network.exchange(machine, async () => this.#write(key, value, expected)),
      list: prefix => this.#list(prefix),
      ...(watches && {
        watch: (key, changed, signal) =>
          network.exchange(machine, async () => this.#watch(key, () => network.wake(machine, changed), signal)),
      }),
    }
  }

  #read(key: string): Entry<number> | undefined {
    const found = this.#records.get(key)
    const { resolution, tooOld = 0 } = this.#nature
    if (!found || resolution === undefined) return found && { value: found.value, version: found.version }
    const age = Math.floor(this.#world.now / resolution) * resolution - Math.ceil(found.written) + tooOld
    return { value: found.value, version: found.version, age }
  }

  #write(key: string, value: string, expected: number | undefined): number | undefined {
    if (!this.#nature.ignoresVersions && this.#records.get(key)?.version !== expected) return undefined
    this.#versions += 1
    this.#records.set(key, { value, version: this.#versions, written: this.#world.now })
    for (const changed of this.#changed.get(key) ?? []) changed()
    return this.#versions
  }

  async *#list(prefix: string): AsyncIterable<{ key: string }> {
    for (const key of this.#records.keys()) if (key.startsWith(prefix)) yield { key }
  }

  #watch(key: string, changed: () => void, signal: AbortSignal): void {
    const all = this.#changed.get(key) ?? new Set()
    this.#changed.set(key, all.add(changed))
    signal.addEventListener('abort', () => all.delete(changed))
  }
}
