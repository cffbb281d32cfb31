/** Something in a `List`; it is in none once it was removed. */
export class Entry<Value> {
  readonly value: Value
  list: List<Value> | undefined
  before: Entry<Value> | undefined
  after: Entry<Value> | undefined

  constructor(value: Value, list: List<Value>, before: Entry<Value> | undefined) {
    this.value = value
    this.list = list
    this.before = before
  }
}

/**
 * What comes and goes with every acquire, in the order in which it came. A `Set` would do but for the garbage collector
 * of V8: each time it grows or is tidied, its old table points to the new one. Once a table has become old, which is
 * soon, it so keeps alive all that were ever in it, until the next collection of everything: half of what an acquire
 * makes then survived a minor collection, which took 20 ms instead of 3.
 */
export class List<Value> {
  #first: Entry<Value> | undefined
  #last: Entry<Value> | undefined
  #size = 0

  get first(): Entry<Value> | undefined {
    return this.#first
  }

  get size(): number {
    return this.#size
  }

  add(value: Value): Entry<Value> {
    const entry = new Entry(value, this, this.#last)
    if (this.#last) this.#last.after = entry
    else this.#first = entry
    this.#last = entry
    this.#size += 1
    return entry
  }

  /** False if it was removed before. */
  remove(entry: Entry<Value>): boolean {
    if (entry.list !== this) return false
    const { before, after } = entry
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    this.#size -= 1
    entry.list = undefined
    entry.before = undefined
    entry.after = undefined
    return true
  }

  /** As they are now, whatever is added and removed meanwhile. */
  values(): Value[] {
    const values: Value[] = []
    for (let entry = this.#first; entry; entry = entry.after) values.push(entry.value)
    return values
  }
}
