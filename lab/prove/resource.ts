// The guarded resource, a process of its own to which nothing happens: whatever its clients believe, what it accepts is
// what they would have done to the world.
import { createServer, type Socket } from 'node:net'
import { Recorder } from './history.ts'
import { onLines } from './lines.ts'

/** How it is told what to do, by the process that starts it. */
export interface ResourceOrder {
  readonly history: string
  readonly origin: string
  /** Are writes with a token lower than the highest seen refused? */
  readonly fence: boolean
}

/** A request to write, a line of JSON. */
export interface WriteRequest {
  readonly name: string
  readonly token: string
  readonly write: number
}

/** The answer. */
export interface WriteReply {
  readonly write: number
  readonly accepted: boolean
}

process.once('message', ({ history: path, origin, fence }: ResourceOrder) => {
  const history = new Recorder(path, BigInt(origin))
  const marks = new Map<string, bigint>()

  // One process and no pause inside: the check and the write are one step.
  const decide = ({ name, token, write }: WriteRequest): WriteReply => {
    const mark = marks.get(name) ?? 0n
    const accepted = !fence || BigInt(token) >= mark
    if (BigInt(token) > mark) marks.set(name, BigInt(token))
    history.write(accepted ? 'accepted' : 'rejected', { name, token, write, mark: `${mark}` })
    return { write, accepted }
  }

  const serve = (socket: Socket): void => {
    onLines(socket, line => socket.write(`${JSON.stringify(decide(JSON.parse(line)))}\n`))
  }
  const server = createServer({ noDelay: true }, serve).listen(0, '127.0.0.1', () => {
    process.send?.(server.address())
  })
})
process.on('disconnect', () => process.exit())
