import type { Acquisition } from '../acquisition.ts'
import { ms } from '../format.ts'
import { type Shared, slotKey } from '../shared.ts'
import { without } from '../span.ts'
import { struck, type Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** How long a holder works at most, in ttls. */
const LONGEST_WORK = 1.5

/** The key of holders that hold no slot: of limit 1. */
const ALONE = 'alone'
type Key = number | typeof ALONE

/** The uses of a shared name by one permit: from its first to its last accepted write, by the order of the resource. */
interface Use {
  readonly acquisition: Acquisition
  readonly first: number
  readonly last: number
}

/**
 * Sharing as the resource sees it: no slot accepts a lower token than before or than that of a writer, a writer has the
 * highest of all, never more than `limit` permits are in use, and nobody is beside a writer. A permit is in use from its
 * first to its last accepted write.
 */
export function sharing(trace: Trace): Violation[] {
  const shared = Object.entries(trace.run.shared ?? {})
  return shared.flatMap(([name, how]) => [...fallen(trace, name), ...crowded(trace, name, how)])
}

function fallen({ decisions, writers }: Trace, name: string): Violation[] {
  const newest = new Map<Key, { readonly token: bigint; readonly op: number }>()
  return (decisions.get(name) ?? []).flatMap(({ kind, write, at }) => {
    const by = kind === 'accepted' ? writers.get(write)?.acquisition : undefined
    if (!by) return []
    const { op, role, token } = by
    const shown: (readonly [Key, bigint])[] = by.slots.size > 0 ? [...by.slots] : [[ALONE, token]]
    // A holder of no slots is alone: above all others. Readers do not exclude each other.
    const compared = shown.flatMap(([slot, own]) => {
      const shared: Key[] = role === 'reader' ? [ALONE] : [ALONE, slot]
      const slots = slot === ALONE ? [...newest.keys()] : shared
      return slots.map(each => ({ own, before: newest.get(each), slot: each }))
    })
    for (const [slot, own] of shown) if (own >= (newest.get(slot)?.token ?? 0n)) newest.set(slot, { token: own, op })
    return compared.flatMap(({ own, before, slot }): Violation[] => {
      if (!before || own >= before.token) return []
      const what = `a write with token ${own} was accepted after one with ${before.token}`
      const where = typeof slot === 'number' ? slotKey(name, slot) : name
      return [{ promise: 'safety', at, name: where, what, ops: [before.op, op] }]
    })
  })
}

function crowded(trace: Trace, name: string, shared: Shared): Violation[] {
  const uses = usesOf(trace, name).sort((one, other) => one.first - other.first)
  const violations: Violation[] = []
  let begun = 0
  let current: Use[] = []
  for (const [order, { kind, at }] of (trace.decisions.get(name) ?? []).entries()) {
    if (kind === 'rejected') continue
    for (let next = uses[begun]; next && next.first <= order; next = uses[begun]) {
      current.push(next)
      begun += 1
      const wrong = wrongSlot(next.acquisition, shared)
      if (wrong) violations.push({ promise: 'safety', at, name, what: wrong, ops: [next.acquisition.op] })
    }
    current = current.filter(({ last }) => last >= order)
    const what = conflict(current, shared)
    if (what) violations.push({ promise: 'safety', at, name, what, ops: current.map(each => each.acquisition.op) })
  }
  return violations
}

function usesOf({ acquisitions }: Trace, name: string): Use[] {
  return [...acquisitions.values()].flatMap(acquisition => {
    if (acquisition.name !== name) return []
    const accepted = acquisition.writes.flatMap(({ decision }) =>
      decision?.kind === 'accepted' ? [decision.order] : [],
    )
    if (accepted.length === 0) return []
    return [{ acquisition, first: Math.min(...accepted), last: Math.max(...accepted) }]
  })
}

function wrongSlot({ slots }: Acquisition, shared: Shared): string | undefined {
  const highest = Math.max(...slots.keys())
  if (shared.kind !== 'semaphore' || highest < shared.limit) return undefined
  return `slot ${highest} was in use, with a limit of ${shared.limit}`
}

/** What is wrong with these permits in use at one moment. */
function conflict(uses: readonly Use[], shared: Shared): string | undefined {
  const all = uses.map(({ acquisition }) => acquisition)
  if (shared.kind === 'semaphore') {
    const permits = all.reduce((sum, { slots }) => sum + slots.size, 0)
    return permits > shared.limit ? `${permits} permits were in use, with a limit of ${shared.limit}` : undefined
  }
  const writer = all.find(({ role }) => role === 'writer')
  const other = all.find(each => each !== writer)
  if (!writer || !other) return undefined
  return `client ${writer.client} wrote beside the ${other.role} of client ${other.client}`
}

/** How long each client waited for a shared name, without its own faults and outages, in milliseconds: longest last. */
export function waitsOf(trace: Trace): { readonly acquisition: Acquisition; readonly waited: number }[] {
  const { acquisitions, run, end, faults } = trace
  const byClient = Map.groupBy(faults, fault => (fault.stopsMajority ? 'all' : struck(fault)))
  const outages = byClient.get('all') ?? []
  return [...acquisitions.values()]
    .filter(({ name }) => run.shared?.[name])
    .map(acquisition => {
      const away = [...outages, ...(byClient.get(acquisition.client) ?? [])]
      const spans = away.map(({ at, until }) => ({ from: at, to: until }))
      const wait = { from: acquisition.asked, to: Math.min(acquisition.settled, end) }
      return { acquisition, waited: without([wait], spans).reduce((sum, { from, to }) => sum + to - from, 0) }
    })
    .sort((one, other) => one.waited - other.waited)
}

/** Every waiter is served before each other client has worked and died once, and its position has lapsed. */
export function unserved(trace: Trace): Violation[] {
  const { ttl, clients, bound } = trace.run
  const limit = clients * (LONGEST_WORK * ttl + 2 * (ttl + bound.election))
  return waitsOf(trace).flatMap(({ acquisition: { name, op, client, asked }, waited }): Violation[] => {
    if (waited <= limit) return []
    const what = `client ${client} waited ${ms(waited)} and was not served; ${ms(limit)} are allowed`
    return [{ promise: 'deadlock', at: asked + waited, name, what, ops: [op] }]
  })
}
