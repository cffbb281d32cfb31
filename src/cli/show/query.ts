import type { ParseArgsOptionsConfig } from 'node:util'
import { connect, LeaseError, type Locks } from '../../index.ts'
import { atMostOne, COMMON, one, parse } from '../arguments.ts'
import { closeLocks } from '../close-locks.ts'
import { Output } from '../output.ts'
import { storeUrl } from '../store-url.ts'

/** The parsed command line of a command that reads or changes one store. */
export interface Query {
  /** The argument NAME or PREFIX (empty if it is missing). */
  readonly argument: string
  /** The URL of the store. It may contain a password. */
  readonly url: string
  readonly locks: Locks
  readonly output: Output
  /** The options of this command alone. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Parses `command NAME` or `command [PREFIX]`, connects, calls `answer`, and closes. Returns the exit code. */
export async function query(
  command: string,
  what: 'NAME' | 'PREFIX',
  args: readonly string[],
  answer: (query: Query) => Promise<number>,
  options: ParseArgsOptionsConfig = {},
): Promise<number> {
  const { values, positionals } = parse(command, [...args], { ...COMMON, ...options })
  const argument = what === 'NAME' ? one(command, what, positionals) : (atMostOne(command, what, positionals) ?? '')
  const output = new Output(values)
  const url = storeUrl(values.store, output)
  const locks = await connect(url, { lazy: true }) // the answer is the first request
  try {
    return await answer({ argument, url, locks, output, values })
  } catch (error) {
    if (!LeaseError.is(error, 'OUTCOME_UNKNOWN')) return output.fail(error)
    const message = `${error.message}; perhaps it is another kind of server` // a server that waits for more input
    return output.fail(new LeaseError(error.code, message, { cause: error }))
  } finally {
    await closeLocks(locks, output)
  }
}
