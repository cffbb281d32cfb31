/** A server sent invalid data: too short, too long, or with an invalid length. */
export class Malformed extends Error {}

/** Writes ZooKeeper's serialisation (jute): big-endian, with a length before each value of variable size. */
export class Writer {
  #bytes: Buffer
  #length = 0

  constructor(size = 256) {
    this.#bytes = Buffer.allocUnsafe(size)
  }

  int(value: number): this {
    this.#reserve(4)
    this.#length = this.#bytes.writeInt32BE(value, this.#length)
    return this
  }

  long(value: bigint): this {
    this.#reserve(8)
    this.#length = this.#bytes.writeBigInt64BE(value, this.#length)
    return this
  }

  bool(value: boolean): this {
    this.#reserve(1)
    this.#length = this.#bytes.writeUInt8(value ? 1 : 0, this.#length)
    return this
  }

  buffer(value: Uint8Array): this {
    this.int(value.length)
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
    return this
  }

  string(value: string): this {
    const bytes = Buffer.byteLength(value)
    this.int(bytes)
    this.#reserve(bytes)
    this.#length += this.#bytes.write(value, this.#length)
    return this
  }

  /** Returns a frame: the length, followed by everything written so far. */
  frame(): Buffer {
    const frame = Buffer.allocUnsafe(4 + this.#length)
    frame.writeInt32BE(this.#length)
    this.#bytes.copy(frame, 4, 0, this.#length)
    return frame
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** Reads what `Writer` writes. Throws `Malformed` for missing bytes and invalid lengths. */
export class Reader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset
  }

  int(): number {
    return this.#bytes.readInt32BE(this.#take(4))
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8))
  }

  bool(): boolean {
    return this.#bytes[this.#take(1)] !== 0
  }

  /** A length of -1 stands for null, and is read as empty. */
  buffer(): Buffer {
    const length = this.int()
    if (length < -1) throw new Malformed(`a length is ${length}`)
    const start = this.#take(Math.max(length, 0))
    return this.#bytes.subarray(start, this.#offset)
  }

  string(): string {
    return this.buffer().toString()
  }

  strings(): string[] {
    return this.list(() => this.string())
  }

  /** Each element takes at least 4 bytes, so an impossible length is detected before anything is allocated. */
  list<Element>(read: () => Element): Element[] {
    const length = this.int()
    if (length < -1 || length * 4 > this.remaining) throw new Malformed(`a list has a length of ${length}`)
    return Array.from({ length: Math.max(length, 0) }, read)
  }

  #take(bytes: number): number {
    const start = this.#offset
    if (bytes > this.remaining) throw new Malformed(`it ends after ${this.remaining} of ${bytes} bytes`)
    this.#offset += bytes
    return start
  }
}

/** Splits a stream of bytes into frames. */
export class Frames {
  readonly #longest: number
  #pieces: Buffer[] = []
  #bytes = 0
  /**
   * The length of the current frame, including its length field. Until that is known, this is 4, the size of the length
   * field.
   */
  #needed = 4

  /** `longest` is the largest number of bytes in a frame. A longer frame is `Malformed`. */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** Adds a piece of the stream, and returns the frames that end in it. */
  *add(piece: Buffer): Generator<Buffer> {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    while (this.#bytes >= this.#needed) {
      const bytes = this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces)
      const length = bytes.readInt32BE()
      if (length < 0 || length > this.#longest) throw new Malformed(`a frame has a length of ${length}`)
      this.#needed = 4 + length
      const isWhole = bytes.length >= this.#needed
      const rest = isWhole ? bytes.subarray(this.#needed) : bytes
      this.#pieces = rest.length > 0 ? [rest] : []
      this.#bytes = rest.length
      if (!isWhole) return
      const frame = bytes.subarray(4, this.#needed)
      this.#needed = 4
      yield frame
    }
  }
}
