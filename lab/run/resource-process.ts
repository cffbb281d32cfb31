// The guarded resource, a process without faults. What it accepts is what the clients have really done.
import { createServer, type Socket } from 'node:net'
import { Recorder } from '../judge/history.ts'
import { type Mark, slotKey } from '../judge/shared.ts'
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
  /** The slots of a permit. Each is a resource of its own, with its own high-water mark. */
  readonly slots?: readonly Mark[] | undefined
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
  const decide = ({ name, token, write, slots }: WriteRequest): WriteReply => {
    const shown = slots?.map(({ slot, token: own }) => ({ key: slotKey(name, slot), token: BigInt(own) }))
    const all = shown ?? [{ key: name, token: BigInt(token) }]
    const markOf = (key: string): bigint => marks.get(key) ?? 0n
    const older = all.find(each => each.token < markOf(each.key))
    const accepted = !fence || !older
    // The token that decides, with its mark.
    const decisive = older ?? all[0] ?? { key: name, token: 0n }
    const reported = { name, token: `${decisive.token}`, write, mark: `${markOf(decisive.key)}` }
    if (accepted) for (const each of all) if (each.token > markOf(each.key)) marks.set(each.key, each.token)
    history.write(accepted ? 'accepted' : 'rejected', reported)
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
