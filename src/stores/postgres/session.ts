import { openLink } from '../shared/link.ts'
import type { Driver, Link } from './client.ts'
import { lookAt, makeSchema, unusable } from './migrate.ts'
import type { Names } from './names.ts'

/**
 * One connection and what it knows of its server's clock: the milliseconds to add to `performance.now()`. That clock
 * of ours stands still while the machine sleeps and nobody can set it, so that a wrong idea of the server's time makes
 * a request late at worst, and never lets a late one pass.
 */
export class Session {
  readonly link: Link
  #offset = Number.POSITIVE_INFINITY

  private constructor(link: Link) {
    this.link = link
  }

  static async open(driver: Driver, names: Names, create: boolean, closing: AbortSignal): Promise<Session> {
    let sent = 0
    let time = 0
    const begin = async (link: Link): Promise<void> => {
      sent = performance.now()
      const found = await lookAt(link, names)
      time = found.time
      if (found.format === undefined && create) await makeSchema(link, names)
      else if (found.format === undefined)
        throw unusable(
          `the table ${names.lease} does not exist: make it with holdfast migrate --store URL, or let the store make it ` +
            'with create: true (?create=true in a URL)',
        )
    }
    const session = new Session(await openLink(driver, begin, closing))
    session.learn(time, sent)
    return session
  }

  /** What `performance.now()` of ours is on the server's clock. */
  serverTime(moment: number): number {
    return moment + this.#offset
  }

  /** The server answered at some moment between `sent` and now. An idea of it that fits is kept, else the earliest. */
  learn(time: number, sent: number): void {
    const lowest = time - performance.now()
    const highest = time - sent
    if (lowest <= this.#offset && this.#offset <= highest) return
    this.#offset = lowest
  }
}
