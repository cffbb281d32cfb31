import { checkName, invalid, show } from '../contract/check.ts'

/**
 * The most names at once. Each is renewed by itself, so a set costs as many requests as it has names. All of them must fit
 * in one batch of every store. A caller that needs more names acquires the name of what they belong to.
 */
const MOST_NAMES = 64

/** The names as they were given, without duplicates. Throws `INVALID_ARGUMENT`. */
export function distinctNames(names: unknown): readonly string[] {
  if (!Array.isArray(names)) throw invalid(`all needs an array of names, not ${show(names)}`)
  if (names.length === 0) throw invalid('all needs at least one name')
  const distinct = [...new Set<unknown>(names)]
  if (distinct.length > MOST_NAMES)
    throw invalid(
      `all takes at most ${MOST_NAMES} names, not ${distinct.length}: acquire the name of what they belong to`,
    )
  for (const name of distinct) checkName(name)
  return distinct as string[]
}

/**
 * Sorts by UTF-8 bytes: the one order in which every process acquires. Without it, two sets could each hold what the
 * other waits for. JavaScript's own order differs, because it compares UTF-16.
 */
export function inOrder(names: readonly string[]): readonly string[] {
  return names
    .map(name => ({ name, bytes: Buffer.from(name) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ name }) => name)
}
