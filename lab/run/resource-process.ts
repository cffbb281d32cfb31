// The guarded resource, a process without faults. What it accepts is what the clients have really done.
import { createServer, type Socket } from 'node:net'
import type { Mark } from '../../src/fencing/mark.ts'
import { highestFor, judge } from '../../src/fencing/rule.ts'
import { parseToken } from '../../src/fencing/shown.ts'
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
  /** What the holder shows, as in `HOLDFAST_TOKENS`: by resource its token, that of a permit with its limit and slots. */
  readonly tokens: Readonly<Record<string, string>>
}

/** The answer. */
export interface WriteReply {
  readonly write: number
  readonly accepted: boolean
}

process.once('message', ({ history: path, origin, fence }: ResourceTask) => {
  const history = new Recorder(path, BigInt(origin))
  const resources = new Map<string, Map<string, Mark>>()

  // One process and no pause inside: the check and the write are one step.
  const decide = ({ name, write, tokens }: WriteRequest): WriteReply => {
    const all = Object.entries(tokens).map(([resource, text]) => {
      const marks = resources.get(resource) ?? new Map<string, Mark>()
      const shown = { epoch: 0, token: 0n, ...parseToken(text) }
      return { resource, marks, shown, seen: highestFor(marks, shown)?.token ?? 0n, judged: judge(marks, shown) }
    })
    const older = all.find(({ judged }) => 'highest' in judged)
    const accepted = !fence || !older
    // The token that decides, with its mark.
    const { shown, seen } = older ?? all[0] ?? { shown: { token: 0n }, seen: 0n }
    const reported = { name, token: `${shown.token}`, write, mark: `${seen}` }
    if (accepted)
      for (const { resource, marks, judged } of all) {
        resources.set(resource, marks)
        if ('raised' in judged) for (const [key, mark] of judged.raised) marks.set(key, mark)
      }
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
