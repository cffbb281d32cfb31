import { Wakes } from '../shared/wakes.ts'
import { type Driver, type Link, openLink } from './client.ts'
import { failure } from './failure.ts'

/** What is published on a channel, heard on a connection of its own. */
export function wakesOf(driver: Driver, channel: string): Wakes {
  return new Wakes({
    listen(heard, ended, closing) {
      const subscribe = async (link: Link): Promise<void> => {
        link.onEnd(ended)
        await link.subscribe(channel, heard)
      }
      return openLink(driver, subscribe, closing)
    },
    failure: error => failure(error, { sent: false, served: true, isCluster: driver.isCluster }),
  })
}
