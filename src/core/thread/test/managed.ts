import { afterEach } from 'vitest'
import { type Stage, stage } from '../../../../test/scripted-store.ts'
import type { Claim } from '../../../contract/store.ts'
import { RenewalStatistics } from '../../advice/renewal-statistics.ts'
import { SharedDisruptions, type SharedStatistics, shareStatistics, workerStatistics } from '../disruptions.ts'
import { Liveness } from '../liveness.ts'
import { ManagedLeases } from '../managed-leases.ts'
import { type Command, idOf, type Notification } from '../messages.ts'
import { SharedTerm } from '../term.ts'
import type { Timestamp } from '../timestamp.ts'

export const TTL = 60_000
export const MARGIN = 602
export const claim: Claim = { name: 'a', id: 'a1', owner: 'main', ttl: TTL, note: '', queue: false }
export const id: string = idOf(claim)

const open: ManagedLeases[] = []
afterEach(() => {
  for (const leases of open.splice(0)) leases.close()
})

/** The worker, and what the main thread sees of it. */
export interface Thread extends Stage {
  readonly notifications: Notification[]
  /** Of the main thread. */
  readonly statistics: RenewalStatistics
  readonly shared: SharedStatistics
  /** As the main thread sees it. */
  readonly term: SharedTerm
  /** Lets time pass in which the main thread proves that it lives. */
  live(ms: number): Promise<void>
  execute(command: Command): Promise<void>
}

/** What runs in the worker, in virtual time, with a lease that the main thread holds. */
export async function thread(options: Partial<Extract<Command, { kind: 'hold' }>> = {}): Promise<Thread> {
  const set = stage()
  const { clock, store, server } = set
  const notifications: Notification[] = []
  const monotonic = (): bigint => BigInt(Math.round(clock.now() * 1e6))
  const now = (): Timestamp => ({ monotonic: monotonic(), wall: Math.floor(clock.wall()) })
  const liveness = new Liveness(undefined, monotonic)
  const isSubscribed = (): boolean => true
  liveness.prove(isSubscribed)
  const environment = { clock, random: () => 0.5 }
  const statistics = new RenewalStatistics(clock, 0, undefined)
  const disruptions = new SharedDisruptions()
  const shared = shareStatistics(statistics, disruptions)
  const threadStatistics = workerStatistics(environment, shared)
  const leases = new ManagedLeases(
    store,
    environment,
    liveness,
    threadStatistics,
    sent => notifications.push(sent),
    now,
  )
  open.push(leases)
  const grant = await server.acquire(claim, new AbortController().signal)
  if (!grant.held) throw new Error('the name is not free')
  const term = new SharedTerm(undefined, now)
  term.write(() => TTL - MARGIN)
  const maxHold = Number.POSITIVE_INFINITY
  const hold = {
    kind: 'hold',
    claim,
    token: grant.token,
    term: term.memory,
    maxBlocked: undefined,
    maxHold,
  } as const
  await leases.execute({ ...hold, ...options })
  return {
    ...set,
    notifications,
    statistics,
    shared,
    term,
    async live(ms) {
      for (let passed = 0; passed < ms; passed += 1_000) {
        liveness.prove(isSubscribed)
        await clock.advance(1_000)
      }
    },
    execute: command => leases.execute(command),
  }
}
