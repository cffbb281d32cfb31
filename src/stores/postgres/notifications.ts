import { LeaseError } from '../../contract/errors.ts'
import type { Clock } from '../../contract/time.ts'
import { openConnection } from '../wire/connection.ts'
import { Notifications } from '../wire/notifications.ts'
import type { PostgresConnection, PostgresDriver } from './connection.ts'
import { failure } from './failure.ts'

/** Receives the notifications of a channel over its own connection. */
export function notificationsOf(clock: Clock, driver: PostgresDriver, channel: string): Notifications {
  return new Notifications(clock, {
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

/**
 * Rejects if the connection goes through a pooler. A pooler gives the connection, and the messages with it, to other
 * clients between two statements.
 */
async function checkDirect(connection: PostgresConnection): Promise<void> {
  const pid = Number(await connection.askInTime('select pg_backend_pid()::text, $0'))
  if (connection.pid === undefined || connection.pid === pid) return
  const message =
    'notifications do not pass through a pooler: give the option direct a client that connects to PostgreSQL directly'
  throw new LeaseError('INVALID_ARGUMENT', message)
}
