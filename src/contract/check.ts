import { LeaseError } from './errors.ts'
import { printable } from './printable.ts'
import { LONGEST_TEXT, SEPARATOR } from './reserved.ts'
import type { Store } from './store.ts'
import { LONGEST_DELAY } from './timers.ts'

/** The shortest ttl in milliseconds. Below this, the margin and the delays of the event loop leave no time to work. */
const SHORTEST_TTL = 10

const control = /\p{Cc}/u
// Line separators, and characters that are invisible or reverse text: with them a name could imitate another. Allowed
// are the joiners that Persian, Indic scripts and emoji need, and variation selectors.
const invisible = /[\p{Zl}\p{Zp}]|(?!\u200c|\u200d|\p{VS})\p{DI}/u

/** Throws `INVALID_ARGUMENT` unless `name` is 1-255 bytes of UTF-8 without control characters, and not reserved. */
export function checkName(name: unknown): asserts name is string {
  checkStoredName(name)
  if (name.includes(SEPARATOR))
    throw invalid(`the name ${printable(show(name))} contains U+241F, which is reserved for markers`)
}

/** Like `checkName`, but also accepts the names of markers: for calls that show or break what is stored. */
export function checkStoredName(name: unknown): asserts name is string {
  if (Array.isArray(name)) throw invalid('a lease has one name: for several use locks.all(names)')
  checkText(name, 'the name of a lease')
  if (name === '') throw invalid('the name of a lease is empty: give 1 to 255 bytes of text')
}

/** Throws unless `text` (an owner or a note) has at most 255 bytes, and no control or invisible characters. */
export function checkText(text: unknown, what: string): asserts text is string {
  if (typeof text !== 'string') throw invalid(`${what} must be a string, not ${show(text)}`)
  const bytes = Buffer.byteLength(text)
  if (bytes > LONGEST_TEXT) throw invalid(`${what} has ${bytes} bytes of UTF-8: at most ${LONGEST_TEXT} are allowed`)
  if (control.test(text)) throw invalid(`${what} has a control character (${show(text)}): remove it`)
  if (invisible.test(text)) throw invalid(`${what} has an invisible character (${show(text)}): remove it`)
  if (!text.isWellFormed()) throw invalid(`${what} has half a surrogate pair (${show(text)}): it is not Unicode`)
}

/** Throws unless a ttl or a `maxHold` is a whole number of milliseconds from 10 to 2^31 - 1 (about 24.8 days). */
export function checkDuration(value: unknown, what: string): asserts value is number {
  if (Number.isInteger(value) && (value as number) >= SHORTEST_TTL && (value as number) <= LONGEST_DELAY) return
  throw invalid(
    `${what} must be a whole number of milliseconds from ${SHORTEST_TTL} to ${LONGEST_DELAY}, not ${show(value)}`,
  )
}

/** Throws unless `value` is a whole number from `least` to `most`. */
export function checkWhole(
  value: unknown,
  what: string,
  least: number,
  most: number = Number.POSITIVE_INFINITY,
): asserts value is number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return
  const range = Number.isFinite(most) ? `${least} to ${most}` : least
  throw invalid(`${what} must be a whole number from ${range}, not ${show(value)}`)
}

/** Throws `INVALID_ARGUMENT` unless `value` is a boolean. */
export function checkBoolean(value: unknown, what: string): asserts value is boolean {
  if (typeof value !== 'boolean') throw invalid(`${what} must be true or false, not ${show(value)}`)
}

/** Throws unless a ttl is a duration of at least `store.guarantees.minTtl`. */
export function checkTtl(
  value: unknown,
  { kind, guarantees }: Pick<Store, 'kind' | 'guarantees'>,
  what = 'ttl',
): asserts value is number {
  checkDuration(value, 'ttl')
  const shortest = guarantees?.minTtl ?? 0 // a caller's own store may have no guarantees
  if (value < shortest)
    throw invalid(`${what} is ${value} ms; ${kind} needs at least ${shortest}. Durations are milliseconds`)
}

/** Throws unless a limit on waiting is zero or more milliseconds. `Infinity` means no limit. */
export function checkWait(value: unknown, what: string): asserts value is number {
  if (typeof value === 'number' && value >= 0) return
  throw invalid(`${what} must be 0 or more milliseconds, or Infinity, not ${show(value)}`)
}

/** Throws unless `value` is `true`, `false`, or, where a heartbeat thread is possible, `'thread'`. */
export function checkHeartbeat(value: unknown, hasThread: boolean): asserts value is boolean | 'thread' {
  if (typeof value === 'boolean') return
  if (value !== 'thread') throw invalid(`heartbeat must be true, false or 'thread', not ${show(value)}`)
  if (process.versions.bun ?? process.versions.deno)
    throw invalid("heartbeat: 'thread' shares memory as only Node can: use heartbeat: true, or run Node")
  if (hasThread) return
  throw invalid(
    "heartbeat: 'thread' needs a store that a second thread can open: make the locks with " +
      "connect('redis://…') or connect('sqlite:…')",
  )
}

/** Throws unless `value` is `undefined` or an `AbortSignal`. Accepts signals of another realm. */
export function checkSignal(value: unknown): asserts value is AbortSignal | undefined {
  if (value === undefined) return
  if (typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value) return
  throw invalid(`signal must be an AbortSignal, not ${show(value)}`)
}

/** Throws for unknown options: neither a mistyped `tll` nor a bare number must silently mean the defaults. */
export function checkKeys(options: unknown, known: ReadonlySet<string>, what: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalid(
      `the options of ${what} must be an object, not ${show(options)}${known.has('wait') ? ', such as { wait: 5_000 }' : ''}`,
    )
  for (const key in options) {
    if (!known.has(key)) throw invalid(`${what} has no option ${show(key)}, only ${[...known].join(', ')}`)
  }
}

/** Throws if a call got more arguments than it takes, such as options that it would ignore. */
export function checkNoMore(
  more: readonly unknown[],
  call: string,
  cure: string = 'give options to using, tryUsing, acquire or tryAcquire',
): void {
  if (more.length > 0) throw invalid(`${call} takes nothing else, but got ${show(more[0])}: ${cure}`)
}

/** Makes an `INVALID_ARGUMENT` error. */
export function invalid(message: string): LeaseError {
  return new LeaseError('INVALID_ARGUMENT', message)
}

/** Formats a value from the caller for the message of a `LeaseError`, which escapes invisible characters. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'bigint' ? `${value}n` : String(value)
}
