import type { Socket } from 'node:net'

type Mode = 'pass' | 'hold' | 'drop' | 'stall'
type Piece = Buffer | 'end' | 'reset'

/** One direction of a proxy, over all its connections, present and future. It passes until told otherwise. */
export class Direction {
  /** Bytes that arrived at the proxy, also those dropped afterwards. */
  bytes = 0
  mode: Mode = 'pass'
  /** Milliseconds. */
  latency = 0
  readonly pipes: Set<Pipe> = new Set()

  /** Ends every fault: what was held goes on, in order. Connections that lost bytes are reset, a stream has no holes. */
  pass(): void {
    this.#turn('pass')
    for (const pipe of this.pipes) if (pipe.hasLost) pipe.resetBoth()
  }

  /** Takes everything from the sender and keeps it, ends and resets included, until `pass()`. */
  hold(): void {
    this.#turn('hold')
  }

  /** Takes everything from the sender and forgets it, ends and resets included. */
  drop(): void {
    this.#turn('drop')
  }

  /** Stops reading, so that the sender's buffers fill up: a half-open connection. */
  stall(): void {
    this.#turn('stall')
  }

  /** Each piece leaves this many ms after it came. */
  delay(ms: number): void {
    this.#turn('pass', ms)
  }

  /**
   * Resets the present connections towards the receiver of this direction alone: with `up` the server forgets a
   * client that believes to be connected, with `down` the client is cut off and the server does not know.
   */
  reset(): void {
    for (const pipe of this.pipes) pipe.reset()
  }

  #turn(mode: Mode, latency = 0): void {
    this.mode = mode
    this.latency = latency
    for (const pipe of this.pipes) pipe.flush()
  }
}

/** One direction of one connection. */
export class Pipe {
  /** Called when the receiver's socket has taken a piece. */
  onDelivered: (piece: Buffer) => void = () => {}
  hasLost = false
  #isDeaf = false
  #timer: NodeJS.Timeout | undefined
  readonly #queue: { readonly piece: Piece; readonly at: number }[] = []
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction

  constructor(from: Socket, to: Socket, direction: Direction) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    direction.pipes.add(this)
    from.on('data', chunk => {
      direction.bytes += chunk.length
      this.#receive(chunk)
    })
    from.on('end', () => this.#receive('end'))
    from.on('error', () => this.#receive('reset'))
    to.on('close', () => {
      direction.pipes.delete(this)
      clearTimeout(this.#timer)
    })
    this.flush()
  }

  /** Sends what may go by now. */
  flush(): void {
    clearTimeout(this.#timer)
    const { mode, latency } = this.#direction
    if (mode === 'stall') this.#from.pause()
    else this.#from.resume()
    if (mode === 'hold' || mode === 'stall') return
    for (let next = this.#queue[0]; next; next = this.#queue[0]) {
      const wait = next.at + latency - performance.now()
      if (wait > 0 && mode === 'pass') {
        this.#timer = setTimeout(() => this.flush(), wait)
        return
      }
      this.#queue.shift()
      if (mode === 'drop') this.hasLost = true
      else this.#deliver(next.piece)
    }
  }

  /** From now on nothing passes on this one connection. */
  deafen(): void {
    this.#isDeaf = true
  }

  reset(): void {
    resetSocket(this.#to)
  }

  resetBoth(): void {
    resetSocket(this.#from)
    resetSocket(this.#to)
  }

  #receive(piece: Piece): void {
    if (this.#isDeaf) return
    this.#queue.push({ piece, at: performance.now() })
    this.flush()
  }

  #deliver(piece: Piece): void {
    if (this.#to.destroyed) return
    if (piece === 'end') this.#to.end()
    else if (piece === 'reset') resetSocket(this.#to)
    else this.#to.write(piece, error => error ?? this.onDelivered(piece))
  }
}

/**
 * Resets a connection, or closes it if its end is on the way already: a socket that is reset while it shuts down is never
 * closed (libuv answers EINVAL), and Node 24 then turns in circles when the process ends.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}
