// A client of a run: a process of its own, so that it can be killed, stopped, blocked and cut off as users' processes are.
import { createLocks, type Store } from '../../src/index.ts'
import { type Opening, openAt } from '../opening.ts'
import { Contender } from './contender.ts'
import { Recorder } from './history.ts'
import { seeded } from './random.ts'
import { Times } from './times.ts'
import { Writer } from './writer.ts'

/** How it is told what to do, by the process that starts it. */
export interface ClientOrder {
  readonly client: number
  /** The first number of its acquisitions and writes: those of a client that was killed are not used again. */
  readonly first: number
  readonly opening: Opening
  readonly names: readonly string[]
  /** Milliseconds. */
  readonly ttl: number
  readonly seed: number
  /** Milliseconds between two leases, at least. */
  readonly pace: number
  readonly history: string
  readonly origin: string
  /** The port of the guarded resource. */
  readonly resource: number
}

/** What it is told later. `block`: milliseconds for which its event loop stands still. */
export type ClientMessage = { readonly block: number } | { readonly stop: true }

const stop = new AbortController()

async function contend(order: ClientOrder): Promise<void> {
  const { client, first, names, ttl, seed, pace } = order
  const history = new Recorder(order.history, BigInt(order.origin))
  const store = await openAt(order.opening)
  const sent = timesOf(store, () => history.now())
  const locks = createLocks(store, { ttl, owner: `client ${client}` })
  const writer = await Writer.connect(order.resource)
  let number = first
  const next = (): number => number++
  process.send?.('ready')
  const contenders = names.map((name, index) => {
    const random = seeded(seed + 1_000_003 * client + 7_919 * index + first)
    return new Contender({ client, name, ttl, locks, history, writer, random, next, sent, stop: stop.signal, pace })
  })
  await Promise.all(contenders.map(contender => contender.run()))
  await locks.close({ grace: 1_000 })
  writer.close()
}

/**
 * When the request left that was granted: the core knows and does not tell, and an order in real time is judged by it.
 */
function timesOf(store: Store, now: () => number): Times {
  const times = new Times()
  const acquire = store.acquire.bind(store)
  store.acquire = async (claim, signal) => {
    const asked = now()
    const answer = await acquire(claim, signal)
    if (answer.held) times.set(claim.name, answer.token, asked)
    return answer
  }
  return times
}

process.once('message', (order: ClientOrder) => {
  process.on('message', (message: ClientMessage) => {
    if ('stop' in message) stop.abort()
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, message.block)
  })
  contend(order).then(
    () => process.exit(0),
    error => {
      process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit())
