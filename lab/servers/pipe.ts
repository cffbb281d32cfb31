import type { Socket } from 'node:net'

type Mode = 'pass' | 'hold' | 'drop' | 'stall'
type Piece = Buffer | 'end' | 'reset'

/** One direction of a proxy, for all its connections, open and future. At first it passes everything. */
export class Direction {
  /** Bytes that arrived at the proxy, including dropped ones. */
  bytes = 0
  mode: Mode = 'pass'
  /** Milliseconds. */
  latency = 0
  readonly pipes: Set<Pipe> = new Set()

  /** Ends every fault. Held bytes pass in order. Connections that lost bytes are reset, because a stream has no holes. */
  pass(): void {
    this.#turn('pass')
    for (const pipe of this.pipes) if (pipe.hasLost) pipe.resetBoth()
  }

  /** Holds everything that is sent, including ends and resets, until `pass()`. */
  hold(): void {
    this.#turn('hold')
  }

  /** Drops everything that is sent, including ends and resets. */
  drop(): void {
    this.#turn('drop')
  }

  /** Stops reading, so the sender's buffers fill up: a half-open connection. */
  stall(): void {
    this.#turn('stall')
  }

  /** Delays everything by this many milliseconds. */
  delay(ms: number): void {
    this.#turn('pass', ms)
  }

  /**
   * Resets the open connections towards the receiver only. With `up` the server loses a client that believes to be
   * connected; with `down` the client loses the server.
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
  /** Called when the socket of the receiver has accepted a piece. */
  onDelivered: (piece: Buffer) => void = () => {}
  hasLost = false
  isDeaf = false
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

  /** Sends what may pass by now. */
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

  /** Drops everything from now on. */
  deafen(): void {
    this.isDeaf = true
  }

  reset(): void {
    resetSocket(this.#to)
  }

  resetBoth(): void {
    resetSocket(this.#from)
    resetSocket(this.#to)
  }

  #receive(piece: Piece): void {
    if (this.isDeaf) return
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
 * Resets a connection, or closes it if it is shutting down: libuv cannot reset such a socket (EINVAL), and Node 24 then
 * loops forever when the process ends.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}
