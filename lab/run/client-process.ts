// A client of a run. It is a process, so that it can be killed, paused, blocked and cut off.
import { createLocks } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { type Opening, openAt } from '../engines/opening.ts'
import { seeded } from '../faults/random.ts'
import { Recorder } from '../judge/history.ts'
import type { Shared } from '../judge/shared.ts'
import { Contender } from './contender.ts'
import { recordRequests } from './requests.ts'
import { recordStalls } from './stalls.ts'
import { Times } from './times.ts'
import { Writer } from './writer.ts'

/** The first message to the process. */
export interface ClientTask {
  readonly client: number
  /** The first number of its acquisitions and writes. Numbers of a killed process are not used again. */
  readonly first: number
  readonly opening: Opening
  readonly names: readonly string[]
  /** How clients share these names; the others are leases. */
  readonly shared: Readonly<Record<string, Shared>>
  /** Milliseconds. */
  readonly ttl: number
  readonly seed: number
  /** The shortest pause between two leases, in milliseconds. */
  readonly pace: number
  readonly history: string
  readonly origin: string
  /** The port of the guarded resource. */
  readonly resource: number
}

/**
 * Later messages. `block`: how long to block the event loop, in milliseconds. `blockAtGrant`: the same, when the store next
 * grants a name for which a claim waited, within `within` ms. `speed`: how fast the monotonic clock runs from now on.
 */
export type ClientMessage =
  | { readonly block: number }
  | { readonly blockAtGrant: number; readonly within: number }
  | { readonly speed: number }
  | { readonly stop: true }

const stop = new AbortController()
let late = { ms: 0, until: 0 }

async function contend(task: ClientTask): Promise<void> {
  const { client, first, names, shared: ways, ttl, seed, pace } = task
  const history = new Recorder(task.history, BigInt(task.origin))
  const store = await openAt(task.opening)
  let number = first
  const next = (): number => number++
  recordRequests(store, { client, history, next })
  const sent = timesOf(store, () => history.now())
  const locks = createLocks(store, { ttl, owner: `client ${client}` })
  const writer = await Writer.connect(task.resource)
  const { waiting, order } = store.guarantees
  history.write('opened', { client, waiting, order })
  recordStalls(history, client)
  process.send?.('ready')
  const contenders = names.map((name, index) => {
    const random = seeded(seed + 1_000_003 * client + 7_919 * index + first)
    const busy = !ways[name] && index > 0 && index === names.length - 1
    const setting = { client, name, shared: ways[name], busy, ttl, locks, history, writer, random, next, sent, pace }
    return new Contender({ ...setting, stop: stop.signal })
  })
  await Promise.all(contenders.map(contender => contender.run()))
  await locks.close({ grace: 1_000 })
  writer.close()
}

/** The store has granted a name, and the core does not know it yet. */
function blockAfterGrant(): void {
  if (performance.now() >= late.until) return
  late.until = 0
  block(late.ms)
}

const monotonic = performance.now.bind(performance)

/** The history has a clock of its own, which this does not change. */
function runClock(speed: number): void {
  const [start, real] = [performance.now(), monotonic()]
  performance.now = () => start + (monotonic() - real) * speed
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Records when granted requests left. The core does not report it, and the order of tokens is judged by it. */
function timesOf(store: Store, now: () => number): Times {
  const times = new Times()
  const waited = new Set<string>()
  const acquire = store.acquire.bind(store)
  store.acquire = async (claim, signal) => {
    const asked = now()
    const answer = await acquire(claim, signal)
    if (!answer.held) waited.add(claim.id)
    else {
      times.set(claim.name, answer.token, asked)
      if (waited.delete(claim.id)) blockAfterGrant()
    }
    return answer
  }
  return times
}

process.once('message', (task: ClientTask) => {
  process.on('message', (message: ClientMessage) => {
    if ('stop' in message) stop.abort()
    else if ('block' in message) block(message.block)
    else if ('speed' in message) runClock(message.speed)
    else late = { ms: message.blockAtGrant, until: performance.now() + message.within }
  })
  contend(task).then(
    () => process.exit(0),
    error => {
      process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit())
