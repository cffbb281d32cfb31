import { onTestFinished, vi } from 'vitest'
import { type Stage, stage } from '../../../../test/scripted-store.ts'
import { LeaseError } from '../../../contract/errors.ts'
import type { Lease } from '../../../contract/lease.ts'
import { StoreLocks } from '../../../create-locks.ts'
import { RenewalStatistics } from '../../advice/renewal-statistics.ts'
import type { Renewer } from '../../renewer.ts'
import { Liveness } from '../liveness.ts'
import { ManagedLeases } from '../managed-leases.ts'
import { leaseError } from '../messages.ts'
import { ThreadRenewals, type WorkerLink } from '../thread-renewals.ts'

export interface Threads extends Stage {
  readonly lease: Lease
  /** Ends the worker. What it sent may still arrive. */
  kill(): void
  /** Until the returned function is called, the worker receives nothing. */
  hang(): () => void
  /** Milliseconds that the lease lasts at the server; 0 if it is free. */
  atServer(): Promise<number>
}

/** A lease on `a` of the main thread, and its worker, in one virtual time. A message between the two takes 1 ms. */
export async function threads(ttl: number): Promise<Threads> {
  const set = stage({ ttl })
  const { clock, store, server } = set
  const monotonic = (): bigint => BigInt(Math.round(clock.now() * 1e6))
  const spies = [
    vi.spyOn(process.hrtime, 'bigint').mockImplementation(monotonic),
    vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(clock.wall())),
  ]
  const environment = { clock, random: () => 0.5 }
  const liveness = new Liveness(undefined, monotonic)
  liveness.prove(() => true)
  const calls = new Map<number, (error: LeaseError | undefined) => void>()
  const inbox: (() => void)[] = []
  let renewals: ThreadRenewals | undefined
  let state: 'runs' | 'hangs' | 'ended' = 'runs'
  const deliver = (): void => {
    if (state === 'runs') for (const message of inbox.splice(0)) message()
  }
  const renew: Stage['store']['renew'] = (...request) =>
    state === 'ended' ? new Promise(() => {}) : store.renew(...request)
  const managed = new ManagedLeases(
    Object.assign(Object.create(store), { renew }),
    environment,
    liveness,
    new RenewalStatistics(clock, 0, undefined),
    notification =>
      clock.after(1, () => {
        if (notification.kind !== 'extended') return 'id' in notification && renewals?.receive(notification)
        calls.get(notification.call)?.(notification.error && leaseError(notification.error))
        calls.delete(notification.call)
      }),
    () => ({ monotonic: monotonic(), wall: Date.now() }),
  )
  // As `HeartbeatThread` does it.
  const worker: WorkerLink = {
    blocked: 0,
    send(command) {
      inbox.push(() => void managed.execute(command))
      clock.after(1, deliver)
      return state !== 'ended'
    },
    extend({ id, ttl, from }, signal) {
      const { promise, resolve } = Promise.withResolvers<LeaseError | undefined>()
      const call = calls.size + clock.now()
      calls.set(call, resolve)
      const giveUp = (): void => {
        if (calls.delete(call)) worker.send({ kind: 'keep', id, ttl: from })
      }
      signal.addEventListener('abort', giveUp, { once: true })
      if (!worker.send({ kind: 'extend', id, ttl, from, call })) resolve(ENDED)
      return promise
    },
  }
  const hold: Renewer['hold'] = (...held) => {
    renewals = new ThreadRenewals(worker, ...held)
    return renewals.lease
  }
  const thread: Renewer = { ready: async () => {}, hold, close: async () => {} }
  const locks = new StoreLocks(store, { ttl }, environment, async () => thread)
  onTestFinished(() => {
    managed.close()
    for (const spy of spies) spy.mockRestore()
  })
  const lease = await locks.acquire('a', { heartbeat: 'thread', maxBlocked: 600_000 })
  await clock.advance(1)
  return {
    ...set,
    lease,
    kill() {
      state = 'ended'
      for (const answer of calls.values()) answer(ENDED)
      calls.clear()
      renewals?.takeOver(ENDED)
    },
    hang() {
      state = 'hangs'
      return () => {
        state = 'runs'
        deliver()
      }
    },
    async atServer() {
      for await (const record of server.inspect({ name: 'a' }, new AbortController().signal))
        if (record.state === 'held') return record.remaining
      return 0
    },
  }
}

const ENDED = new LeaseError('STORE_UNAVAILABLE', 'the thread has ended')
