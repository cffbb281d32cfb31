import { slotsText } from '../contract/record.ts'
import { isMarker, titleOf } from '../contract/reserved.ts'
import type { Change } from './changes.ts'
import type { Hold } from './hold.ts'
import type { Sight } from './sight.ts'
import type { Look } from './survey.ts'
import { byTitle, troublesOf } from './troubles.ts'
import { verdictOf } from './verdict.ts'

/** Milliseconds. Names with a longer wait are listed before those whose waiters are served soon. */
const LONG_WAIT = 10_000

/** The leases that this process acquired and lost since the dashboard was made. */
export interface Process {
  acquired: number
  lost: number
}

/** The first screen, as JSON. Unknown values are null. Times are milliseconds. `store`: the store's name for people. */
export function overview(look: Look, access: string, { acquired, lost }: Process, store = ''): Record<string, unknown> {
  const { at, since, pause, sights, signs, changes, changed, takeovers, isPartial, search, failure } = look
  const troubles = troublesOf(signs)
  const ofName = new Map<string, number[]>()
  for (const [index, { names }] of troubles.entries())
    for (const name of names) ofName.set(name, [...(ofName.get(name) ?? []), index])
  const names = [...sights.values()].map(sight => row(sight, ofName.get(sight.name) ?? [], at)).sort(byTrouble)
  const stuck = ofName.size
  const what = failure ? 'Cannot be read' : stuck > 0 ? `(${stuck}) may be stuck` : 'Holdfast'
  return {
    ...{ at, since, pause, isPartial, access, store },
    failure: failure?.message ?? null,
    search: search ? { began: search.began, usual: search.usual ?? null } : null,
    title: store === '' ? what : `${what} · ${store}`,
    verdict: verdictOf(look, troubles),
    troubles: troubles.map(({ text, end }) => (end === '' ? text : `${text}. ${end}`)),
    // While the store cannot be read, the current state is unknown.
    counts: failure
      ? null
      : {
          stuck,
          waiting: names.reduce((sum, { waiters }) => sum + waiters, 0),
          held: names.filter(each => each.owner !== null && !each.isMarker).length,
        },
    // A process without leases can lose none, so 0 would say nothing.
    lost: acquired + lost > 0 ? lost : null,
    changed,
    takeovers,
    changes: recent(changes).map(change => ({ ...change, title: titleOf(change.name) })),
    names,
  }
}

/** The latest five changes of each kind, the newest first. */
function recent(changes: readonly Change[]): readonly Change[] {
  const kinds = [true, false].flatMap(kind => changes.filter(({ isTakeover }) => isTakeover === kind).slice(0, 5))
  return kinds.sort((a, b) => b.at - a.at)
}

/** One of several holders. */
function slotOf({ owner, token, slots, note, remaining, age, isSinceGrant }: Hold): Record<string, unknown> {
  return { title: slotsText(slots), owner, token, note, remaining, held: age, isSinceGrant }
}

/** One name, in the first screen. */
interface Row {
  readonly name: string
  readonly title: string
  readonly isMarker: boolean
  /** The owner. For a shared name: how much of it is held. */
  readonly owner: string | null
  readonly token: string | null
  readonly note: string
  readonly remaining: number | null
  readonly held: number | null
  readonly isSinceGrant: boolean
  /** The indices of its troubles in the list of all troubles. */
  readonly troubles: readonly number[]
  /** The number of waiters. A waiter counts once, even if it wants several slots. */
  readonly waiters: number
  readonly waited: number | null
  /** The holders of a shared name. */
  readonly slots: readonly Record<string, unknown>[]
}

/** The row of a name. A shared name shows how much of it is held, since when, and when its first lease ends. */
function row(sight: Sight, troubles: readonly number[], at: number): Row {
  const { name, held, holds, waiters, isShared } = sight
  return {
    name,
    title: titleOf(name),
    isMarker: isMarker(name),
    owner: held?.owner ?? null,
    token: held?.token || null,
    note: held?.note ?? '',
    remaining: held?.remaining ?? null,
    held: held?.age ?? null,
    isSinceGrant: held?.isSinceGrant ?? false,
    troubles,
    waiters: waiters.length,
    waited: waiters.length > 0 ? at - sight.waitedSince : null,
    slots: isShared ? holds.map(slotOf) : [],
  }
}

/** Sorts holders that may be stuck first, then long waits. Other rows are sorted by name, which keeps them in place. */
function byTrouble(a: Row, b: Row): number {
  return (
    (a.troubles[0] ?? Number.MAX_VALUE) - (b.troubles[0] ?? Number.MAX_VALUE) ||
    Number(isWaitedFor(b)) - Number(isWaitedFor(a)) ||
    byTitle(a.title, b.title)
  )
}

function isWaitedFor({ troubles, waited }: Row): boolean {
  return troubles.length === 0 && (waited ?? 0) >= LONG_WAIT
}
