const CHUNK = 1 << 16
const EMPTY = -1

/** Distinct states in order of discovery, each with its predecessor. */
export class States {
  readonly limit: number
  /** The buffer for the next state. */
  readonly draft: Uint8Array
  count = 0
  readonly #size: number
  readonly #chunks: { bytes: Uint8Array; words: Int32Array; parents: Int32Array }[] = []
  readonly #draftWords: Int32Array
  #table = new Int32Array(1 << 12).fill(EMPTY)

  constructor(size: number, limit: number) {
    this.#size = size
    this.limit = limit
    this.draft = new Uint8Array(size)
    this.#draftWords = new Int32Array(this.draft.buffer)
  }

  get isFull(): boolean {
    return this.count >= this.limit
  }

  /** Adds the draft unless the state exists. */
  add(parent: number): void {
    if (this.count * 2 >= this.#table.length) this.#grow()
    const mask = this.#table.length - 1
    const draft = this.#draftWords
    let slot = hash(draft, 0, draft.length) & mask
    for (let found = this.#table[slot] as number; found !== EMPTY; found = this.#table[slot] as number) {
      if (this.#isDraft(found)) return
      slot = (slot + 1) & mask
    }
    this.#table[slot] = this.count
    const { bytes, parents } = this.#chunk(this.count)
    bytes.set(this.draft, (this.count % CHUNK) * this.#size)
    parents[this.count % CHUNK] = parent
    this.count += 1
  }

  /** The bytes of a state. */
  at(state: number): { bytes: Uint8Array; start: number } {
    return { bytes: this.#chunk(state).bytes, start: (state % CHUNK) * this.#size }
  }

  /** The path to the state, from the start. */
  path(state: number): Uint8Array[] {
    const path: Uint8Array[] = []
    for (let at = state; at !== EMPTY; at = this.#chunk(at).parents[at % CHUNK] as number) {
      const { bytes, start } = this.at(at)
      path.unshift(bytes.slice(start, start + this.#size))
    }
    return path
  }

  #isDraft(state: number): boolean {
    const { words } = this.#chunk(state)
    const draft = this.#draftWords
    const start = (state % CHUNK) * draft.length
    for (let index = 0; index < draft.length; index += 1) if (words[start + index] !== draft[index]) return false
    return true
  }

  #chunk(state: number): { bytes: Uint8Array; words: Int32Array; parents: Int32Array } {
    const index = Math.floor(state / CHUNK)
    let chunk = this.#chunks[index]
    if (!chunk) {
      const bytes = new Uint8Array(CHUNK * this.#size)
      chunk = { bytes, words: new Int32Array(bytes.buffer), parents: new Int32Array(CHUNK) }
      this.#chunks[index] = chunk
    }
    return chunk
  }

  #grow(): void {
    const table = new Int32Array(this.#table.length * 2).fill(EMPTY)
    const mask = table.length - 1
    const length = this.#draftWords.length
    for (let state = 0; state < this.count; state += 1) {
      let slot = hash(this.#chunk(state).words, (state % CHUNK) * length, length) & mask
      while (table[slot] !== EMPTY) slot = (slot + 1) & mask
      table[slot] = state
    }
    this.#table = table
  }
}

function hash(words: Int32Array, start: number, length: number): number {
  let hash = 0
  for (let index = start; index < start + length; index += 1) {
    hash = Math.imul(hash ^ (words[index] as number), 0x9e3779b1)
    hash ^= hash >>> 15
  }
  return Math.imul(hash, 0x85ebca6b) >>> 4
}
