import { LARGEST_LIMIT } from '../contract/store.ts'
import { compareMarks, type Mark, type Shown } from './mark.ts'

// A resource has a mark for its name, one for each slot that a permit showed, and 16 for readers:
//
// | holder         | its token is at least                     | then raises             |
// | limit 1        | the marks of the name and of all slots    | the mark of the name    |
// | limit N        | the marks of the name and of its slots    | the marks of its slots  |
// | reader         | the mark of the name                      | the mark of its stripe  |
//
// A holder of a limit above 1 makes the mark of the name, with the token 0, if it is missing: it is what they lock.

/** The key of the mark of the name. Those of slots are their numbers, those of readers `r0` to `r15`. */
export const NAME = ''

/** The number of marks for readers. Readers have no limit, so a mark per slot would be too many: slots share marks. */
export const STRIPES = 16

/** Does this holder exclude all others? */
export function isAlone({ limit = 1 }: Shown): boolean {
  return limit === 1
}

export function isReader({ limit }: Shown): boolean {
  return limit === LARGEST_LIMIT
}

/** The keys of the marks that a holder raises, in the order in which every engine locks them. */
export function keysOf(shown: Shown): readonly string[] {
  if (isAlone(shown)) return [NAME]
  const slots = shown.slots ?? []
  if (!isReader(shown)) return slots.map(String)
  return [...new Set(slots.map(slot => `r${slot % STRIPES}`))]
}

/** The keys of the marks that a holder is compared with. `undefined`: all. */
export function comparedKeysOf(shown: Shown): readonly string[] | undefined {
  if (isAlone(shown)) return undefined
  return isReader(shown) ? [NAME] : [NAME, ...keysOf(shown)]
}

/** The highest mark of a resource that counts for this holder. It is refused if that is above its own. */
function highestFor(marks: ReadonlyMap<string, Mark>, shown: Shown): Mark | undefined {
  const compared = comparedKeysOf(shown) ?? [...marks.keys()]
  const seen = compared.flatMap(key => marks.get(key) ?? [])
  return seen.sort((one, other) => compareMarks(other, one))[0]
}

/** The marks that change, by key, or the highest of those that refuse the holder. `marks` are those of its resource. */
export function judge(
  marks: ReadonlyMap<string, Mark>,
  shown: Shown,
): { readonly highest: Mark } | { readonly raised: ReadonlyMap<string, Mark> } {
  const highest = highestFor(marks, shown)
  if (highest && compareMarks(highest, shown) > 0) return { highest }
  const { epoch, token } = shown
  const raised = new Map<string, Mark>()
  if (!marks.has(NAME)) raised.set(NAME, { epoch, token: 0n })
  for (const key of keysOf(shown)) {
    const seen = marks.get(key)
    if (!seen || compareMarks(seen, shown) < 0) raised.set(key, { epoch, token })
  }
  return { raised }
}
