import { isShared, slotsText, useOf } from '../contract/record.ts'
import { isMarker, titleOf } from '../contract/reserved.ts'
import type { Hold } from './hold.ts'
import type { Look } from './survey.ts'

/** The data for the page of one name, from the last look, without a request. Unknown values are null. Times are ms. */
export function detail(name: string, look: Look | undefined): Record<string, unknown> {
  const sight = look?.sights.get(name)
  const { at = 0, signs } = look ?? {}
  const { holds = [], past = [], waiters = [] } = sight ?? {}
  const isSlotted = isShared(holds) || past.some(({ limit }) => limit > 1)
  const leases = [...holds.map(hold => lease(hold, false)), ...past.map(hold => lease(hold, true))]
  // Among leases with the same slots, the newest stays first.
  if (isSlotted) leases.sort((a, b) => a.first - b.first || a.last - b.last)
  return {
    name,
    title: titleOf(name),
    isMarker: isMarker(name),
    at,
    state: holds.length > 0 ? 'held' : sight || (look && !look.failure && !look.isPartial) ? 'free' : 'unknown',
    use: isShared(holds) ? useOf(holds) : null,
    isSlotted,
    signs: (signs?.get(name) ?? []).map(({ text }) => text),
    leases,
    waiters: waiters.map(({ owner, note, want, since }) => ({ owner, note, want, waited: at - since })),
  }
}

function lease(hold: Hold, isOver: boolean) {
  const { owner, token, note, slots, since, isSinceGrant, seen, remaining, isOverdue } = hold
  return {
    ...{ owner, token, note, isSinceGrant, isOverdue },
    ...{ slots: slotsText(slots), first: slots[0] ?? 0, last: slots.at(-1) ?? 0 },
    ...{ from: since, to: isOver ? seen : null, remaining: isOver ? null : remaining },
  }
}
