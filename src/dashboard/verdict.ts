import { useOf } from '../contract/record.ts'
import { titleOf } from '../contract/reserved.ts'
import { span } from './span.ts'
import type { Look } from './survey.ts'
import type { Trouble } from './troubles.ts'

/** The answer to "is anything wrong?". */
export interface Verdict {
  /** `bad`: something may be stuck, or the store cannot be read. `warn`: somebody waits. `ok`: neither. */
  readonly level: 'bad' | 'warn' | 'ok'
  /** A sentence in three parts: before the link, the link, and after it. */
  readonly say: readonly [before: string, link: string, after: string]
  /** The target of the link: the page of a name, or the rows of an owner. */
  readonly name?: string | undefined
  readonly owner?: string | undefined
  readonly why: string
}

export function verdictOf(look: Look, troubles: readonly Trouble[]): Verdict {
  const { at, sights, failure, search, isPartial } = look
  const [trouble, ...others] = troubles
  if (failure) return { level: 'bad', say: ['The store cannot be read', '', ''], why: failure.message }
  if (trouble) {
    const more = others.length === 0 ? [] : [`${others.length} more ${others.length === 1 ? 'sign' : 'signs'} below`]
    const waiting = waitingOf(trouble.names.reduce((sum, name) => sum + (sights.get(name)?.waiters.length ?? 0), 0))
    return { level: 'bad', ...sentence(trouble, [...waiting, ...more]) }
  }
  const waits = [...sights.values()].filter(({ waiters }) => waiters.length > 0)
  const [first] = waits.sort((a, b) => a.waitedSince - b.waitedSince)
  if (first) {
    const use = first.isShared ? [`Held: ${useOf(first.holders)}`] : []
    const why = [...use, ...waitingOf(first.waiters.length), `the first for at least ${span(at - first.waitedSince)}`]
    return { level: 'warn', say: ['Longest wait: ', titleOf(first.name), ''], name: first.name, why: why.join(', ') }
  }
  const calm = 'Nobody waits, and no holder seems stuck'
  if (search && search.usual === undefined)
    return {
      level: 'ok',
      say: ['Still looking for names', '', ''],
      why: `Of those found so far: ${calm.toLowerCase()}`,
    }
  if (!isPartial && [...sights.values()].every(({ holders }) => holders.length === 0))
    return { level: 'ok', say: ['No name is held', '', ''], why: 'A name is listed here as soon as it is acquired' }
  return { level: 'ok', say: [calm, '', ''], why: isPartial ? 'Of the names that are shown' : '' }
}

function sentence({ names, owner, text, end }: Trouble, more: readonly string[]): Omit<Verdict, 'level'> {
  const [name = ''] = names
  const ends = end === '' ? [] : [end]
  return names.length === 1
    ? {
        say: ['', titleOf(name), ' may be stuck'],
        name,
        why: [owner, text, ...ends, ...more].join(' · '),
      }
    : { say: ['', owner, text.slice(owner.length)], owner, why: [...ends, ...more].join(' · ') }
}

function waitingOf(callers: number): readonly string[] {
  return callers === 0 ? [] : [`${callers} waiting`]
}
