import { connect, type Locks } from '../index.ts'
import { atMostOne, COMMON, one, parse } from './arguments.ts'
import { Output } from './output.ts'
import { storeUrl } from './where.ts'

/** A command line as the commands read it that ask the store one question. */
export interface Question {
  readonly argument: string
  readonly locks: Locks
  readonly output: Output
}

/**
 * Reads `command NAME` or `command [PREFIX]`, connects, lets `ask` do its work, and closes. Answers the exit code.
 */
export async function open(
  command: string,
  what: 'NAME' | 'PREFIX',
  args: readonly string[],
  ask: (question: Question) => Promise<number>,
): Promise<number> {
  const { values, positionals } = parse(command, [...args], COMMON)
  const argument = what === 'NAME' ? one(command, what, positionals) : (atMostOne(command, what, positionals) ?? '')
  const output = new Output(values)
  const locks = await connect(storeUrl(values.store, output))
  try {
    return await ask({ argument, locks, output })
  } catch (error) {
    return output.fail(error)
  } finally {
    await close(locks, output)
  }
}

/** Whatever that meets, the work is done: it must not change the exit code. What is still held is left to its ttl. */
export async function close(locks: Locks, output: Output): Promise<void> {
  try {
    await locks.close({ grace: 0 })
  } catch (error) {
    output.warn('close_failed', `the store was not closed: ${error instanceof Error ? error.message : error}`)
  }
}
