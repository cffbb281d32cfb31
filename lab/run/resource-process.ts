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
  readonly write: number
  readonly shown: Shown
}

/** What a holder shows to the resource. */
export interface Shown {
  /** The name of its lease. Over a Redlock that of its ticket. */
  readonly resource: string
  readonly token: string
  /** Of a permit or a reader. */
  readonly slots?: readonly number[] | undefined
}

/** The highest tokens of one resource: those of holders that are alone, and by slot those of the others. */
interface Marks {
  alone: bigint
  readonly slots: Map<number, bigint>
}

/** The answer. */
export interface WriteReply {
  readonly write: number
  readonly accepted: boolean
}

process.once('message', ({ history: path, origin, fence }: ResourceTask) => {
  const history = new Recorder(path, BigInt(origin))
  const resources = new Map<string, Marks>()

  // One process and no pause inside: the check and the write are one step.
  const decide = ({ name, write, shown: { resource, token: text, slots } }: WriteRequest): WriteReply => {
    const token = BigInt(text)
    const marks = resources.get(resource) ?? { alone: 0n, slots: new Map<number, bigint>() }
    const compared = slots ? slots.map(slot => marks.slots.get(slot) ?? 0n) : [...marks.slots.values()]
    const highest = compared.reduce(higher, marks.alone)
    const accepted = !fence || token >= highest
    if (accepted) {
      resources.set(resource, marks)
      if (slots) for (const slot of slots) marks.slots.set(slot, higher(token, marks.slots.get(slot) ?? 0n))
      else marks.alone = higher(token, marks.alone)
    }
    history.write(accepted ? 'accepted' : 'rejected', { name, token: text, write, mark: `${highest}` })
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

function higher(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
