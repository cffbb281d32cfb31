// One process of a fleet that is half old: `node worker.ts KIND PORTS KEY FILE`. It acquires the lock again and again, and
// appends a line to the file whenever it has verified that it holds it: the kind, the id of the acquisition, and the time.
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import * as newSemaphore from '../../drop-ins/redis-semaphore/index.ts'
import { Redlock } from '../../drop-ins/redlock/index.ts'
import { type OldMutex, type OldRedlock, oldRedisSemaphore, oldRedlock, oldSesamecareRedlock } from './old-libraries.ts'

/** Milliseconds. */
export const TTL = 500

interface Held {
  /** Reads the clock. */
  isHeld(): boolean
  extend?(): Promise<unknown>
  release(): Promise<unknown>
}

/** What a kind of process does to acquire the lock. `undefined`: it was not acquired. */
type Acquire = (key: string) => Promise<Held | undefined>

const [kind = '', ports = '', key = '', file = ''] = process.argv.slice(2)
const clients = ports.split(',').map(port => new Redis(Number(port), '127.0.0.1', { maxRetriesPerRequest: 1 }))
for (const client of clients) client.on('error', () => {})
const [client] = clients as [Redis]
const isSingle = clients.length === 1

/** Few retries, so that processes that do not wait compete as well. */
const patience = { retryCount: 5, retryDelay: 20, retryJitter: 20 }
const own = { alongside: kind.endsWith('alongside'), trustRestarted: !isSingle || undefined }

const kinds: Readonly<Record<string, () => Acquire>> = {
  'old redlock': () => byRedlock(new (oldRedlock())(clients, patience)),
  'old @sesamecare-oss/redlock': () => byRedlock(new (oldSesamecareRedlock())(clients, patience)),
  'new redlock alongside': () => byRedlock(new Redlock(clients, { ...patience, ...own })),
  'new redlock': () => byRedlock(new Redlock(clients, { ...patience, ...own })),
  'old redis-semaphore': () => {
    const { Mutex, RedlockMutex } = oldRedisSemaphore()
    return byMutex(options => (isSingle ? new Mutex(client, key, options) : new RedlockMutex(clients, key, options)))
  },
  'new redis-semaphore alongside': () => newMutex(),
  'new redis-semaphore': () => newMutex(),
}

/** Both the old ones and the new one. */
function byRedlock(redlock: OldRedlock): Acquire {
  redlock.on('error', () => {})
  return async name => {
    let lock = await redlock.acquire([name], TTL)
    return {
      isHeld: () => Date.now() < lock.expiration,
      extend: async () => {
        lock = await lock.extend(TTL)
      },
      release: () => lock.release(),
    }
  }
}

/** The old one does not know when its lock expires, so this counts from before the only attempt. */
function byMutex(mutexWith: (options: object) => OldMutex): Acquire {
  return async () => {
    const mutex = mutexWith({ lockTimeout: TTL, acquireAttemptsLimit: 1, onLockLost: () => {} })
    const sent = Date.now()
    if (!(await mutex.tryAcquire())) return undefined
    return { isHeld: () => mutex.isAcquired && Date.now() < sent + TTL * 0.99 - 2, release: () => mutex.release() }
  }
}

function newMutex(): Acquire {
  return async () => {
    const options = { ...own, lockTimeout: TTL, acquireTimeout: 300, onLockLost: () => {} }
    const mutex = isSingle
      ? new newSemaphore.Mutex(client, key, options)
      : new newSemaphore.RedlockMutex(clients, key, options)
    if (!(await mutex.tryAcquire())) return undefined
    return { isHeld: () => mutex.isAcquired, release: () => mutex.release() }
  }
}

/** Works for a while under the lock, and notes when it was held for certain: the clock is read before the check. */
async function work(held: Held): Promise<void> {
  const id = randomUUID()
  const end = performance.now() + Math.random() * 1.5 * TTL
  for (let step = 1; performance.now() < end; step += 1) {
    const now = process.hrtime.bigint()
    if (!held.isHeld()) return
    appendFileSync(file, `${kind}\t${id}\t${now}\n`)
    await sleep(5)
    if (step % 20 === 0) await held.extend?.()
  }
}

async function main(acquire: Acquire): Promise<never> {
  for (;;) {
    try {
      const held = await acquire(key)
      if (held) await work(held).finally(() => held.release().catch(() => {}))
    } catch {
      // Busy, lost, or too few servers answered: again.
    }
    await sleep(Math.random() * 50)
  }
}

const open = kinds[kind]
if (open) await main(open())
