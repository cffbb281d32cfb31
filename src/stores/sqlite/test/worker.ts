import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Claim, Grant, Store } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { sqlite } from '../index.ts'
import { newClaim } from './claim.ts'

/** The commands of one process of a test, on its own store. Times are of the clock that all processes share. */
export interface Deeds {
  acquire: Store['acquire']
  renew: Store['renew']
  release: Store['release']
  /** Waits in the queue as the core does. */
  acquireInTurn(claim: Claim): Promise<Grant>
  /** Acquires and releases its own names for `duration` ms. */
  hammer(duration: number): Promise<{ pairs: number; worst: number }>
  /** Repeatedly acquires, holds briefly and releases, for `duration` ms. */
  takeTurns(name: string, duration: number): Promise<Holding[]>
  /** Acquires `name`, and pauses this process while the file is locked for that. Then a file `…-stopped` exists. */
  stopInTransaction(name: string): Promise<void>
}

export interface Holding {
  readonly token: bigint
  readonly from: bigint
  readonly to: bigint
}

const path = process.argv[2] ?? ''
const clock = systemClock()
let stopAfter = Number.POSITIVE_INFINITY

const wall = (): number => {
  stopAfter -= 1
  if (stopAfter === 0) {
    writeFileSync(`${path}-stopped`, '')
    process.kill(process.pid, 'SIGSTOP')
  }
  return clock.wall()
}

const store = sqlite(path, { clock: { ...clock, wall } })
const never = new AbortController().signal

const deeds: Deeds = {
  acquire: claim => store.acquire(claim, never),
  renew: claim => store.renew(claim, never),
  release: key => store.release(key, never),
  async acquireInTurn(claim) {
    const watching = new AbortController()
    let wake = (): void => {}
    let answer = await store.acquire(claim, never)
    if (!answer.held) {
      let woken = false
      const onWake = (): void => {
        woken = true
        wake()
      }
      await store.watch?.(claim, onWake, watching.signal)
      answer = await store.acquire(claim, never)
      while (!answer.held) {
        const { retryAfter } = answer
        await new Promise<void>(resolve => {
          wake = resolve
          setTimeout(resolve, woken ? 0 : retryAfter)
        })
        woken = false
        answer = await store.acquire(claim, never)
      }
    }
    watching.abort()
    return answer
  },
  async hammer(duration) {
    const end = performance.now() + duration
    let pairs = 0
    let worst = 0
    for (let start = performance.now(); start < end; start = performance.now()) {
      const claim = newClaim(`of process ${process.pid}`)
      await store.acquire(claim, never)
      await store.release(claim, never)
      pairs += 1
      worst = Math.max(worst, performance.now() - start)
    }
    return { pairs, worst }
  },
  async takeTurns(name, duration) {
    const end = performance.now() + duration
    const holdings: Holding[] = []
    while (performance.now() < end) {
      const claim = newClaim(name, { queue: true })
      const { token } = await deeds.acquireInTurn(claim)
      const from = process.hrtime.bigint()
      await sleep(Math.random() * 5)
      holdings.push({ token, from, to: process.hrtime.bigint() })
      await deeds.release(claim, never)
    }
    return holdings
  },
  async stopInTransaction(name) {
    await deeds.acquire(newClaim(`${name}, before`), never)
    stopAfter = 2 // the clock is first read for requests that need no lock
    await deeds.acquire(newClaim(name), never)
  },
}

process.on('message', async ({ call, deed, args }: { call: number; deed: keyof Deeds; args: never[] }) => {
  try {
    const answer: unknown = await (deeds[deed] as (...args: unknown[]) => Promise<unknown>)(...args)
    process.send?.({ call, answer })
  } catch (error) {
    const { message, code, retryable } = error as Error & { code: unknown; retryable: unknown }
    process.send?.({ call, error: { message, code, retryable } })
  }
})
process.on('disconnect', () => process.exit())
