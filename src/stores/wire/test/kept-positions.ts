import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { inTime, TooSlow } from '../../../../lab/conformance/timing.ts'
import type { TcpProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, hold, look } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks, type Lease, type Locks } from '../../../index.ts'

/** Milliseconds. The shortest for which a position is kept. */
const TTL = 1_000

/** A server that keeps the positions of waiters, without leases. */
export interface Keeping {
  /** The way of a process to the server. */
  readonly proxy: TcpProxy
  /** Straight to the server, or through the proxy. */
  storeBy(way: 'near' | 'far'): Store
  /** Makes the server forget the first waiter for `a`. */
  loseFirst(): Promise<unknown>
  /** Makes the server believe that nobody has held `a` for 500 ms. Nobody is notified. */
  free(): Promise<unknown>
  /** Which requests arrive while `work` runs, by their verbs. */
  requestsDuring(work: () => Promise<unknown>): Promise<string[]>
}

/** Tests of a store that keeps the positions of all waiters of its process. */
export function keptPositions(stage: () => Keeping): void {
  let near: Locks
  let far: Locks
  beforeEach(() => {
    near = createLocks(stage().storeBy('near'), { ttl: TTL })
    far = createLocks(stage().storeBy('far'), { ttl: TTL })
    return async () => {
      await stage().proxy.accept()
      await Promise.all([near.close(), far.close()])
    }
  })

  const waiting = async (): Promise<string[]> =>
    (await look(near.store, { name: 'a' })).filter(({ state }) => state === 'waiting').map(({ note }) => note)

  /** Waiters in this order, which note in `served` that they were served, and release at once. */
  async function wait(locks: Locks, notes: readonly string[], served: string[]): Promise<Promise<void>[]> {
    const all: Promise<void>[] = []
    for (const note of notes) {
      const one = async (lease: Lease): Promise<void> => {
        served.push(note)
        await lease.release()
      }
      all.push(locks.acquire('a', { note }).then(one))
      await until(`${note} waits`, async () => (await waiting()).includes(note))
    }
    for (const each of all) each.catch(() => {})
    return all
  }

  const notesOf = (side: string, count: number): string[] =>
    Array.from({ length: count }, (_, place) => `${side} ${place}`)

  test('R8: each position is kept for the ttl of its waiter, up to 5 s, in addition to one with a shorter ttl', async () => {
    const lease = await near.acquire('a', { ttl: 60_000 })
    const all = [30_000, TTL].map(ttl => far.acquire('a', { ttl, note: `${ttl}` }).catch(() => {}))
    const remaining = async (): Promise<number[]> =>
      (await look(near.store, { name: 'a' })).slice(1).map(record => record.remaining)
    await until('both wait', async () => (await remaining()).length === 2)
    await new Promise(resolve => setTimeout(resolve, 2 * TTL)) // the shorter one would have lapsed
    const [long = 0, short = 0] = await remaining()
    expect(long).toBeGreaterThan(2 * TTL)
    expect(long).toBeLessThanOrEqual(5 * TTL)
    expect(short).toBeGreaterThan(0)
    await far.close()
    await lease.release()
    await Promise.all(all)
  })

  // A keep that is late by a third of the ttl counts as failed, and then all waiters ask.
  test('R8: one request keeps the positions of all waiters of a process, for longer than each lasts by itself', async () => {
    await inTime(TTL / 5, async () => {
      const lease = await far.acquire('a', { ttl: 60_000 })
      const served: string[] = []
      const order = [...notesOf('near', 10), ...notesOf('far', 2), ...notesOf('later', 10)]
      const all = [
        ...(await wait(near, notesOf('near', 10), served)),
        ...(await wait(far, notesOf('far', 2), served)),
        ...(await wait(near, notesOf('later', 10), served)),
      ]
      try {
        const start = performance.now()
        const verbs = await stage().requestsDuring(() => new Promise(resolve => setTimeout(resolve, 2.5 * TTL)))
        const rounds = (performance.now() - start) / (TTL / 3) + 1
        expect(verbs.length).toBeLessThanOrEqual(2 * rounds) // of two processes
        if (verbs.some(verb => verb !== 'keep')) throw new TooSlow('a keep was late, so all asked')
        expect(await waiting()).toEqual(order)
      } finally {
        await lease.release()
        await Promise.all(all)
      }
      expect(served).toEqual(order)
    })
  })

  test('R8: the positions of a process that is gone lapse, and those of others stay', async () => {
    const lease = await near.acquire('a', { ttl: 60_000 })
    const served: string[] = []
    void (await wait(far, notesOf('far', 3), served))
    const [one] = await wait(near, ['near'], served)
    await stage().proxy.refuse()
    stage().proxy.reset()
    await until('they lapse', async () => (await waiting()).length === 1, { limit: 5 * TTL })
    await lease.release()
    await one
    expect(served).toEqual(['near'])
  })

  test('R9: a kept waiter finds by itself that it may pass a dead one', async () => {
    await using store = stage().storeBy('near')
    await hold(store, claimOf('a', { ttl: 60_000 }))
    const dead = claimOf('a', { ttl: 60_000, note: 'dead', queue: true })
    expect(await acquire(store, dead)).toMatchObject({ held: false })
    const [second] = await wait(near, ['second'], [])
    const keeps = async (): Promise<boolean> =>
      (await stage().requestsDuring(() => sleep(TTL / 3))).some(verb => verb === 'keep')
    await until('its position is kept', keeps)
    await stage().free()
    await second
    expect(await waiting()).toEqual(['dead'])
  })

  test('R9: the lease of a holder that died goes to the first kept waiter, and on to the next', async () => {
    const store = stage().storeBy('near')
    const start = performance.now()
    await hold(store, claimOf('a', { ttl: 3 * TTL }))
    const served: string[] = []
    await Promise.all(await wait(near, notesOf('near', 3), served))
    expect(served).toEqual(notesOf('near', 3))
    expect(performance.now() - start).toBeGreaterThan(2.9 * TTL)
    await store[Symbol.asyncDispose]()
  })

  test('R9: the next kept waiter is woken although the first gave up when it was, and its withdrawal was lost', async () => {
    const [store, own] = [stage().storeBy('near'), stage().storeBy('far')]
    const waiter = async (wake: () => void, signal: AbortSignal): Promise<void> => {
      const claim = claimOf('a', { ttl: 3 * TTL, queue: true })
      await own.watch?.(claim, wake, signal)
      expect(await own.acquire(claim, signal)).toMatchObject({ held: false })
      await own.watch?.(claim, wake, signal)
    }
    const stop = [new AbortController(), new AbortController()] as const
    await hold(store, claimOf('a', { ttl: 3 * TTL }))
    const woken = await new Promise((resolve, reject) => {
      let isLeft = false
      const leave = (): void => {
        isLeft = true
        stop[0].abort()
      }
      waiter(leave, stop[0].signal)
        .then(() => waiter(() => isLeft && resolve('the next'), stop[1].signal))
        .catch(reject)
      setTimeout(resolve, 15 * TTL, 'nobody')
    })
    expect(woken).toBe('the next')
    stop[1].abort()
    await Promise.all([store, own].map(each => each[Symbol.asyncDispose]()))
  })

  test('R9: kept waiters find by themselves that nobody holds the name any more', async () => {
    await using _ = await near.acquire('a', { ttl: 60_000, heartbeat: false })
    const served: string[] = []
    const all = await wait(far, notesOf('far', 3), served)
    await stage().free()
    await Promise.all(all)
    expect(served).toEqual(notesOf('far', 3))
  })

  test('R9: a kept waiter that lost its position asks for a new one', async () => {
    const lease = await near.acquire('a', { ttl: 60_000 })
    const served: string[] = []
    const all = await wait(far, notesOf('far', 3), served)
    await stage().loseFirst()
    await until('it waits again', async () => (await waiting()).at(-1) === 'far 0')
    await lease.release()
    await Promise.all(all)
    expect(served).toEqual(['far 1', 'far 2', 'far 0'])
  })

  test('R9: kept waiters learn that the store is gone, within one ttl and the time of its requests', async () => {
    await using _ = await near.acquire('a', { ttl: 60_000 })
    const all = await wait(far, notesOf('far', 3), [])
    await stage().proxy.refuse()
    stage().proxy.reset()
    const ends = await Promise.allSettled(all)
    expect(ends.map(end => end.status === 'rejected' && end.reason.code)).toEqual(
      Array.from({ length: 3 }, () => 'STORE_UNAVAILABLE'),
    )
  })

  test('a kept waiter that is aborted, or gives up, leaves the queue', async () => {
    const lease = await near.acquire('a', { ttl: 60_000 })
    const served: string[] = []
    const stop = new AbortController()
    const aborted = far.acquire('a', { signal: stop.signal }).catch(error => error)
    const late = far.acquire('a', { wait: 1.5 * TTL }).catch(error => error)
    const [last] = await wait(far, ['last'], served)
    stop.abort(new Error('enough'))
    expect(await aborted).toMatchObject({ message: 'enough' })
    expect(await late).toMatchObject({ code: 'BUSY' })
    await until('one is left', async () => (await waiting()).length === 1)
    await lease.release()
    await last
  })

  // A process that was blocked reads the answer late. A drop-in grants no lease without the lock of the old library.
  describe.each([
    ['comes too late', 'late'],
    ['its process does not accept', 'busy'],
  ] as const)('a kept waiter whose grant %s', (_, fate) => {
    test('keeps its new position for as long as it waits, and is served', async () => {
      const lease = await near.acquire('a', { ttl: 60_000 })
      const refusing = refuseOne(stage().storeBy('far'), fate)
      const locks = createLocks(refusing.store, { ttl: 2 * TTL })
      const served: string[] = []
      const all = await wait(locks, ['far'], served)
      await lease.release()
      await refusing.granted
      const next = near.acquire('a', { ttl: 60_000 })
      await near.break('a')
      const other = await next
      refusing.answer()
      await until('it waits again', async () => (await waiting()).includes('far'))
      await sleep(3 * TTL)
      expect(await waiting()).toEqual(['far'])
      await other.release()
      await Promise.all(all)
      await locks.close()
    })
  })
}

/** A store whose first grant is answered when `answer` is called: after its request was given up, or as busy. */
function refuseOne(store: Store, fate: 'late' | 'busy'): { store: Store; granted: Promise<void>; answer(): void } {
  const granted = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  let isFirst = true
  const acquire: Store['acquire'] = async (claim, signal) => {
    const answer = await store.acquire(claim, signal)
    if (!answer.held || !isFirst) return answer
    isFirst = false
    granted.resolve()
    await answered.promise
    if (fate === 'busy') return { held: false, retryAfter: 20 }
    if (!signal.aborted) await once(signal, 'abort')
    return answer
  }
  const refusing = new Proxy(store, {
    get(target, key) {
      const verb = key === 'acquire' ? acquire : target[key as keyof Store]
      return typeof verb === 'function' ? verb.bind(target as never) : verb
    },
  })
  return { store: refusing, granted: granted.promise, answer: answered.resolve }
}
