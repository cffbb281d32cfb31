/** From 0 up to 1, as `Math.random`. */
export type Random = () => number

/** Mulberry32: the same numbers for the same seed, everywhere. */
export function seeded(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** One of them. Throws for an empty list. */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  if (items.length === 0) throw new Error('there is nothing to pick from')
  return items[Math.floor(random() * items.length)] as Item
}

/** From `least` up to `most`. */
export function between(random: Random, least: number, most: number): number {
  return least + random() * (most - least)
}

/** All of them, in another order. */
export function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  const rest = [...items]
  const order: Item[] = []
  while (rest.length > 0) order.push(...rest.splice(Math.floor(random() * rest.length), 1))
  return order
}
