/**
 * One record for each key, in a system that writes a record only if its version is still the expected one. Versions of
 * any kind are possible: a number, an ETag, a revision. What a register promises:
 *
 * 1. `write` is atomic: of two writes that expect the same version, at most one happens, and each write makes a new version.
 *    A version never returns, also not after the record was deleted.
 * 2. `read` is linearizable: it sees every write that was answered before it began. So read from the primary. Else `mayLag`.
 * 3. Keys are compared byte by byte. They consist of letters, digits, `-`, `_` and `=`, and have at most 765 characters.
 * 4. What failed rejects. A `LeaseError` that is not `retryable` says what to change, such as `ACCESS_DENIED`. After any other
 *    rejection the base reads again, because the write may have happened. It accepts a client that repeats its requests, and
 *    sends a read or write again itself after each second without an answer. `signal` gives up all copies.
 * 5. It may delete a record that nobody has written for `keep` ms, and not sooner.
 */
export interface Register<Version> {
  /** The largest value in bytes. */
  readonly maxBytes: number
  /** Does each `read` tell the age of the record? @default false */
  readonly knowsAge?: boolean | undefined
  /**
   * May a `read` for a moment answer what was before, as from a leader that was replaced and does not know it? Then a lease
   * that a read shows as ended may still be renewed, and an answer that there is no such lease costs a write. @default false
   */
  readonly mayLag?: boolean | undefined
  /**
   * Is `version` newer than `other`? Where reads may lag, a process then ignores a read that shows less than it knows, unless
   * it learned that 30 s ago, or a write shows that the record has another version. @default nobody knows
   */
  isNewer?(version: Version, other: Version): boolean
  /** The current record. `undefined`: there is none. */
  read(key: string, signal: AbortSignal): Promise<Entry<Version> | undefined>
  /**
   * Writes if the version is still `expected` (`undefined`: if there is no record), and resolves to the new version.
   * `undefined`: the version is another one. `keep`: milliseconds for which the record is needed from now on.
   */
  write(
    key: string,
    value: string,
    expected: Version | undefined,
    signal: AbortSignal,
    keep: number,
  ): Promise<Version | undefined>
  /**
   * The keys that begin with `prefix`, each once, in any order, and their records if those cost nothing more. It may miss
   * what was written lately.
   */
  list(prefix: string, signal: AbortSignal): AsyncIterable<Listed<Version>>
  /**
   * Resolves once armed. From then until `signal` aborts, calls `changed` soon after each write of the key, and after a gap
   * in which it may have missed one. A superfluous call costs a read. @default the store polls
   */
  watch?(key: string, changed: () => void, signal: AbortSignal): Promise<void>
  /** Closes what the register has opened itself. @default nothing */
  close?(): Promise<void>
}

/** A key that was listed, and its record. */
export interface Listed<Version> {
  readonly key: string
  /** @default the store reads it */
  readonly entry?: Entry<Version> | undefined
}

/** A record as it was read. */
export interface Entry<Version> {
  readonly value: string
  readonly version: Version
  /**
   * Milliseconds since the `write` of this value was called, never too many, by one clock that all processes read: that of
   * the server. Take off its resolution. @default nobody knows
   */
  readonly age?: number | undefined
}
