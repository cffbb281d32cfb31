import type { Locks } from '../../index.ts'
import { EXIT } from '../failure.ts'
import { RAN, RAN_NOTE } from '../run-marker.ts'
import { query } from './query.ts'

/** `holdfast break`: takes a lease from its holder. Exit code 1 if nobody held it. */
export function breakLease(args: readonly string[]): Promise<number> {
  return query('break', 'NAME', args, async ({ argument: name, locks, output }) => {
    const isRun = await remembersRun(name, locks)
    const token = await locks.break(name)
    const text =
      token === undefined
        ? `${name} was held by nobody`
        : isRun
          ? `${name} is forgotten: the next run with --skip-if-ran-since is not skipped`
          : `${name} is free, and token ${token} outranks its old holder.\n` +
            'The old holder learns of it at its next renewal and may work until then. A resource that checks tokens ' +
            'refuses it once it has seen a higher one.'
    output.print({ name, broken: token !== undefined, token }, text)
    return token === undefined ? EXIT.free : 0
  })
}

/** Such a lease has no holder that could be working. */
async function remembersRun(name: string, locks: Locks): Promise<boolean> {
  return name.endsWith(RAN) && (await locks.inspect(name)).holder?.note === RAN_NOTE
}
