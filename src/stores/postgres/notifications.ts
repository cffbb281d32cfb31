import { LeaseError } from '../../contract/errors.ts'
import { openConnection } from '../shared/connection.ts'
import { Notifications } from '../shared/notifications.ts'
import type { PostgresConnection, PostgresDriver } from './connection.ts'
import { failure } from './failure.ts'

/** Receives what is notified on a channel, over a connection of its own. */
export function notificationsOf(driver: PostgresDriver, channel: string): Notifications {
  return new Notifications({
    subscribe(notified, ended, closing) {
      const listen = async (connection: PostgresConnection): Promise<void> => {
        connection.onEnd(ended)
        await checkDirect(connection)
        await connection.listen(channel, notified)
      }
      return openConnection(driver, listen, closing)
    },
    failure: error => failure(error, false),
  })
}

/** A pooler hands the connection to others between two statements, and messages with it. */
async function checkDirect(connection: PostgresConnection): Promise<void> {
  const pid = Number(await connection.askInTime('select pg_backend_pid()::text, $0'))
  if (connection.pid === undefined || connection.pid === pid) return
  const message =
    'messages cannot be heard through a pooler: give the option direct a client that connects to PostgreSQL itself'
  throw new LeaseError('INVALID_ARGUMENT', message)
}
