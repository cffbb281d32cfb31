import type { Clock } from '../../contract/time.ts'
import { Notifications } from '../wire/notifications.ts'
import { openWire, type RedisDriver, type Wire } from './client.ts'
import { failure } from './failure.ts'

/** Receives the messages of a channel over its own connection. */
export function notificationsOf(clock: Clock, driver: RedisDriver, channel: string): Notifications {
  return new Notifications(clock, {
    subscribe(notified, ended, closing) {
      const subscribe = async (wire: Wire): Promise<void> => {
        wire.onEnd(ended)
        await wire.subscribe(channel, notified)
      }
      return openWire(driver, subscribe, closing)
    },
    failure: error => failure(error, { sent: false, served: true, isCluster: driver.isCluster }),
  })
}
