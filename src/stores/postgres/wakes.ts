import { LeaseError } from '../../contract/errors.ts'
import { openLink } from '../shared/link.ts'
import { Wakes } from '../shared/wakes.ts'
import type { Driver, Link } from './client.ts'
import { failure } from './failure.ts'

/** What is notified on a channel, heard on a connection of its own. */
export function wakesOf(driver: Driver, channel: string): Wakes {
  return new Wakes({
    listen(heard, ended, closing) {
      const listen = async (link: Link): Promise<void> => {
        link.onEnd(ended)
        await checkDirect(link)
        await link.listen(channel, heard)
      }
      return openLink(driver, listen, closing)
    },
    failure: error => failure(error, false),
  })
}

/** A pooler hands the connection to others between two statements, and messages with it. */
async function checkDirect(link: Link): Promise<void> {
  const pid = Number(await link.askInTime('select pg_backend_pid()::text, $0'))
  if (link.pid === undefined || link.pid === pid) return
  const message =
    'messages cannot be heard through a pooler: give the option direct a client that connects to PostgreSQL itself'
  throw new LeaseError('INVALID_ARGUMENT', message)
}
