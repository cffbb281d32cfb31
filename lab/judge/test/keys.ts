import type { World } from '../../../test/simulation/world.ts'

/** The keys of a server like Redis: each call is atomic, and a key can expire. */
export class Keys {
  readonly #world: World
  readonly #entries = new Map<string, { value: string; expires: number }>()

  constructor(world: World) {
    this.#world = world
  }

  get(key: string): string | undefined {
    const entry = this.#entries.get(key)
    return entry && entry.expires > this.#world.now ? entry.value : undefined
  }

  set(key: string, value: string, px: number = Number.POSITIVE_INFINITY): void {
    this.#entries.set(key, { value, expires: this.#world.now + px })
  }

  /** `SET NX`, with `PX` if there is a ttl. */
  setNew(key: string, value: string, px?: number): boolean {
    if (this.get(key) !== undefined) return false
    this.set(key, value, px)
    return true
  }

  expire(key: string, px: number): void {
    const value = this.get(key)
    if (value !== undefined) this.set(key, value, px)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** Deletes or extends a key if it has this value. */
  compare(key: string, value: string, px?: number): boolean {
    if (this.get(key) !== value) return false
    if (px === undefined) this.delete(key)
    else this.set(key, value, px)
    return true
  }

  increment(key: string, least = 0): number {
    const next = Math.max(Number(this.get(key) ?? 0) + 1, least)
    this.set(key, String(next))
    return next
  }
}
