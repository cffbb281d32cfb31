import { once } from 'node:events'
import { slotsText } from '../../contract/record.ts'
import { isMarker, nameOf, titleOf } from '../../contract/reserved.ts'
import type { Hold } from '../../dashboard/hold.ts'
import type { Sight } from '../../dashboard/sight.ts'
import { type Look, Survey } from '../../dashboard/survey.ts'
import { mask, printable, stringify } from '../output.ts'
import { Signals } from '../signals.ts'
import { namesFrom } from './names-from.ts'
import type { Query } from './query.ts'

/** What earlier looks showed of a name. */
interface Known {
  /** Its leases, by token. */
  readonly holds: ReadonlyMap<string, Hold>
  readonly waiters: number
}

/** The new state of a name, for one line. */
interface Change {
  /** The time at which it was seen, in milliseconds since 1970. */
  readonly at: number
  /** `ended`: one of several holders no longer holds it. `ran`, `expired`: the marker of a run was written, or is over. */
  readonly event: 'held' | 'ended' | 'free' | 'waiting' | 'ran' | 'expired'
  readonly name: string
  readonly owner?: string
  readonly token?: string
  readonly note?: string
  /** The slots, if the name is shared. */
  readonly slots?: readonly number[]
  readonly waiters: number
}

/** `holdfast ls --watch`: a line for each name now, and then for each change that is seen, until a signal ends it. */
export async function watch({ argument: prefix, locks, output, values }: Query): Promise<void> {
  const survey = new Survey(namesFrom(locks, prefix))
  const known = new Map<string, Known>()
  const { stop } = new Signals('while it watched the leases')
  const failed = new AbortController()
  let hasRead = false
  let shown: string | undefined
  let wasPartial = false
  const unwatch = survey.watch(look => {
    const { failure, search } = look
    if (failure === undefined) {
      const isPartial = look.isPartial && !search // a search shows names as it finds them
      if (isPartial && !wasPartial)
        output.warn('partial', 'only some names are read: changes of the others are not printed; give a PREFIX')
      wasPartial = isPartial
      if (shown !== undefined) output.info('readable', 'the store can be read again')
      for (const change of changes(look, known)) if (values.json || !values.quiet) print(change, values.json === true)
      hasRead = true
    } else if (!hasRead) failed.abort(failure)
    else if (failure.message !== shown) output.failed('unreadable', `the store cannot be read: ${failure.message}`)
    shown = failure?.message
  })
  const closed = new AbortController()
  process.stdout.once('error', () => closed.abort()) // the reader may end early, such as `| head -3`
  const end = AbortSignal.any([stop, failed.signal, closed.signal])
  if (!end.aborted) await once(end, 'abort')
  unwatch()
  await survey.close()
  if (failed.signal.aborted) throw failed.signal.reason
}

/** The changes since the last look. Updates `known`. */
function changes({ at, sights }: Look, known: Map<string, Known>): Change[] {
  const found: Change[] = []
  for (const name of known.keys()) if (!sights.has(name)) known.delete(name)
  for (const [name, sight] of sights) {
    const before = known.get(name) ?? { holds: new Map(), waiters: 0 }
    found.push(...changesOf(at, sight, before))
    const holds = new Map(sight.holds.map(hold => [hold.token, hold]))
    known.set(name, { holds, waiters: sight.waiters.length })
  }
  return found
}

function changesOf(at: number, sight: Sight, before: Known): Change[] {
  const {
    holds,
    waiters: { length: waiters },
  } = sight
  const isRun = isMarker(sight.name)
  const name = nameOf(sight.name)
  if (holds.length === 0 && before.holds.size > 0) return [{ at, event: isRun ? 'expired' : 'free', name, waiters }]
  const changeOf = (event: 'held' | 'ended' | 'ran', { owner, token, note, limit, slots }: Hold): Change => {
    return { at, event, name, owner, token, note, ...(limit > 1 && { slots }), waiters }
  }
  const now = new Set(holds.map(({ token }) => token))
  const changes = [
    ...[...before.holds.values()]
      .filter(({ limit, token }) => limit > 1 && !now.has(token))
      .map(hold => changeOf('ended', hold)),
    ...holds.filter(({ token }) => !before.holds.has(token)).map(hold => changeOf(isRun ? 'ran' : 'held', hold)),
  ]
  return changes.length === 0 && waiters !== before.waiters ? [{ at, event: 'waiting', name, waiters }] : changes
}

function print(change: Change, isJson: boolean): void {
  const { at, event, name, owner, token, note, slots, waiters } = change
  const lease = [owner, token, ...(slots ? [slotsText(slots)] : []), ...(note ? [note] : [])]
  const facts = event === 'waiting' ? [`${waiters}`] : owner === undefined ? [] : lease
  const text = [new Date(at).toISOString(), event.padEnd(7), titleOf(name), ...facts]
    .map(each => printable(each ?? ''))
    .join('  ')
  process.stdout.write(`${isJson ? stringify(change) : mask(text)}\n`)
}
