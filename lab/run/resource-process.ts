// The guarded resource, a process without faults. What it accepts is what the clients have really done.
import { createServer, type Socket } from 'node:net'
import { Recorder } from '../judge/history.ts'
import { onLines } from './lines.ts'

/** The first message to the process. */
export interface ResourceTask {
  readonly history: string
  readonly origin: string
  /** Refuse writes with a token below the highest one seen? */
  readonly fence: boolean
}

/** A write request, a line of JSON. */
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

process.once('message', ({ history: path, origin, fence }: ResourceTask) => {
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
