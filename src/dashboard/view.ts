import { partOf, SEPARATOR, titleOf } from '../contract/reserved.ts'
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
    changes: recent(changes),
    names: [...sights.values()].map(sight => row(sight, signs.get(sight.name) ?? [], at)),
  }
}

/** The latest five of either kind, the newest first. */
function recent(changes: readonly Change[]): readonly Change[] {
  const kinds = [true, false].flatMap(kind => changes.filter(({ isTakeover }) => isTakeover === kind).slice(0, 5))
  return kinds.sort((a, b) => b.at - a.at)
}

/** The page of one name, from the last look: it does not ask the store. */
export function detail(name: string, look: Look | undefined): Record<string, unknown> {
  const sight = look?.sights.get(name)
  const slots = [...(look?.sights.values() ?? [])].filter(each => each.name.startsWith(name + SEPARATOR))
  return {
    name,
    signs: (look?.signs.get(name) ?? []).map(({ text }) => text),
    holders: sight?.holds.map(({ owner, token, since, seen }) => ({ owner, token, from: since, to: seen })) ?? [],
    waiters: sight?.waiters ?? [],
    slots: slots.map(slot => ({ title: partOf(slot.name).part, owner: slot.holder?.owner ?? null })),
  }
}

function row({ name, holder, hold, waiters }: Sight, signs: readonly Sign[], at: number): Record<string, unknown> {
  const oldest = Math.min(...waiters.map(({ since }) => since))
  return {
    name,
    title: titleOf(name),
    owner: holder?.owner ?? null,
    token: holder?.token?.toString() ?? null,
    note: holder?.note ?? '',
    remaining: holder?.remaining ?? null,
    held: hold?.age ?? null,
    isSinceGrant: hold?.isSinceGrant ?? false,
    signs: signs.map(({ text }) => text),
    waiters: waiters.length,
    waited: waiters.length > 0 ? at - oldest : null,
  }
}
