import { useOf } from '../contract/record.ts'
import { isMarker, titleOf } from '../contract/reserved.ts'
import type { Change } from './changes.ts'
import type { Sight } from './sight.ts'
import type { Sign } from './signs.ts'
import type { Look } from './survey.ts'

/** What this process did itself since the dashboard was made. */
export interface Process {
  acquired: number
  lost: number
}

/** The first screen, as JSON. What is not known is null. Times are milliseconds. */
export function overview(look: Look, access: string, { acquired, lost }: Process): Record<string, unknown> {
  const { at, since, pause, sights, signs, changes, changed, takeovers, isPartial, search, failure } = look
  return {
    ...{ at, since, pause, isPartial, access },
    failure: failure?.message ?? null,
    search: search ? { began: search.began, usual: search.usual ?? null } : null,
    // A process without leases can lose none, so 0 would say nothing.
    lost: acquired + lost > 0 ? lost : null,
    changed,
    takeovers,
    changes: recent(changes).map(change => ({ ...change, title: titleOf(change.name) })),
    names: [...sights.values()].map(sight => row(sight, signs.get(sight.name) ?? [], at)),
  }
}

/** The latest five of either kind, the newest first. */
function recent(changes: readonly Change[]): readonly Change[] {
  const kinds = [true, false].flatMap(kind => changes.filter(({ isTakeover }) => isTakeover === kind).slice(0, 5))
  return kinds.sort((a, b) => b.at - a.at)
}

/** A shared name is one row: how much of it is held, since when, and what is left of the first lease to end. */
function row(sight: Sight, signs: readonly Sign[], at: number): Record<string, unknown> {
  const { name, holders, holds, waiters, isShared } = sight
  const waitsSince = Math.min(...waiters.map(({ since }) => since))
  const [oldest] = holds.toSorted((a, b) => a.since - b.since)
  return {
    name,
    title: titleOf(name),
    isMarker: isMarker(name),
    owner: isShared ? useOf(holders) : (holders[0]?.owner ?? null),
    owners: isShared ? holders.map(({ owner }) => owner) : [],
    token: isShared ? null : (oldest?.token ?? null),
    note: isShared ? '' : (oldest?.note ?? ''),
    remaining: oldest ? Math.min(...holds.map(({ remaining }) => remaining)) : null,
    held: oldest?.age ?? null,
    isSinceGrant: oldest?.isSinceGrant ?? false,
    signs: signs.map(({ text }) => text),
    waiters: waiters.length,
    waited: waiters.length > 0 ? at - waitsSince : null,
  }
}
