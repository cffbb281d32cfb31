import type { LeaseError } from '../../contract/errors.ts'
import { warn } from '../../contract/warnings.ts'
import { Connection as Shared, Silence } from '../shared/connection.ts'
import type { Driver, Link } from './client.ts'
import { failure, isReply } from './failure.ts'
import { type Dialect, type Order, type Reply, Session } from './session.ts'

/** The store's own connection to Redis; of a cluster, those to its nodes. */
export class Connection {
  readonly #driver: Driver
  /** Told the first connection that served. */
  readonly #onServed: (link: Link) => void
  #served = false
  readonly #shared: Shared<Session>

  constructor(driver: Driver, dialect: Dialect, onServed: (link: Link) => void) {
    this.#driver = driver
    this.#onServed = onServed
    this.#shared = new Shared<Session>({
      open: closing => Session.open(driver, dialect, closing),
      failure: (error, session) => {
        // A connection that ended knows better why, such as for a wrong password.
        const reason = (!isReply(error) && session?.link.failure()) || error
        return this.#failure(reason, session !== undefined)
      },
      judge: (error, session) => this.#judge(error, session),
    })
  }

  /** Rejects with a `LeaseError`, after 5 s at the latest. `onSilent` is called if there is no answer for long. */
  carryOut(orders: readonly Order[], onSilent: () => void): Promise<Reply> {
    const work = (session: Session, sent: number): Promise<Reply> =>
      session.carryOut(orders, sent).then(reply => this.#learn(session, reply))
    return this.#shared.carryOut(work, { patience: patienceOf(orders), onSilent })
  }

  /** A connection that seems to work. Rejects with a `LeaseError` if none can be had now. */
  async link(): Promise<Link> {
    return (await this.#shared.session()).link
  }

  /** The error that a caller sees if a request for this key was answered so. */
  failure(error: unknown, key?: string): LeaseError {
    return this.#failure(error, true, key)
  }

  close(): void {
    this.#shared.close()
  }

  #failure(error: unknown, sent: boolean, key?: string): LeaseError {
    const { isCluster, isPlain } = this.#driver
    return failure(error, { sent, served: this.#served, isCluster, isPlain, key })
  }

  #learn(session: Session, reply: Reply): Reply {
    if (reply.refused !== undefined) warnOfWakes(reply.refused)
    const refusal = reply.answers.find(isRefusal)
    if (refusal !== undefined) this.#shared.doubt(session, refusal)
    else if (!this.#served) {
      this.#served = true
      this.#onServed(session.link)
    }
    return reply
  }

  #judge(error: unknown, { link }: Session): 'retire' | 'replace' | 'keep' {
    // A master that has become a replica, and a server that stands still, are left for whatever answers instead.
    if (!this.#driver.isCluster && (error instanceof Silence || /READONLY/.test(String(error)))) return 'retire'
    return !isReply(error) && link.isOpen() ? 'replace' : 'keep'
  }
}

/** Waiters that are not notified of a release find out by asking, which may take a third of their ttl. */
function warnOfWakes(refused: string): void {
  warn(
    'HOLDFAST_WAKES',
    `Redis refuses to notify waiters, so each may wait up to a third of its ttl longer: ${refused}. Permit PUBLISH in ` +
      'scripts, for the channels PREFIX:wake:*, or use a server that supports it.',
  )
}

/** A request that failed alone. */
function isRefusal(answer: unknown): boolean {
  return typeof answer === 'string' && answer.startsWith('!')
}

/** Milliseconds until the first of them is too late; `undefined` if none ever is. */
function patienceOf(orders: readonly Order[]): number | undefined {
  let first: number | undefined
  for (const { until } of orders) if (until !== undefined) first = Math.min(until, first ?? until)
  return first === undefined ? undefined : first - performance.now()
}
