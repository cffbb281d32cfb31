import type { PromiseName } from '../violation.ts'
import type { Contest } from './contest.ts'
import type { Keys } from './keys.ts'
import { type Grant, type Home, RightLock, type Wake } from './lock.ts'
import { type Place, QueueLock } from './queue-lock.ts'
import { QuorumLock } from './quorum-lock.ts'

/** Longer than a run, in milliseconds. */
const FOREVER = 1e6

interface Wrong {
  readonly contest: Partial<Contest>
  /** The promise that it always breaks. */
  readonly breaks: PromiseName
}

class NoWriteBack extends QuorumLock {
  protected override async settle(): Promise<boolean> {
    return true
  }
}

class FromReply extends RightLock {
  protected override end(_sent: number, ttl: number): number {
    return super.end(this.home.machine.now(), ttl)
  }
}

/** The value has the end of the lease, by the wall clock of its writer. */
class WallClock extends RightLock {
  protected override take(name: string, id: string): Promise<number | undefined> {
    return this.home.ask(keys => {
      const [, end = '0'] = keys.get(name)?.split(' ') ?? []
      if (Number(end) > this.home.machine.wall()) return undefined
      keys.set(name, this.#value(id))
      return keys.increment(`${name} token`)
    })
  }

  protected override prolong(name: string, id: string): Promise<boolean> {
    return this.home.ask(keys => {
      if (keys.get(name)?.split(' ')[0] !== id) return false
      keys.set(name, this.#value(id))
      return true
    })
  }

  override release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    return this.home.ask(keys => keys.get(name)?.split(' ')[0] === id && keys.delete(name))
  }

  #value(id: string): string {
    return `${id} ${this.home.machine.wall() + this.home.ttl}`
  }
}

class ReleaseByName extends RightLock {
  override release({ name }: Pick<Grant, 'name'>): Promise<unknown> {
    return this.home.ask(keys => keys.delete(name))
  }
}

/** The counter is deleted with the lease. */
class ForgottenCounter extends RightLock {
  override release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    return this.home.ask(keys => keys.compare(name, id) && keys.delete(`${name} token`))
  }
}

/** A waiter gets its token when it begins to wait. */
class EarlyToken extends RightLock {
  readonly #tokens = new Map<string, number>()

  protected override async take(name: string, id: string): Promise<number | undefined> {
    const token = this.#tokens.get(name) ?? (await this.home.ask(keys => keys.increment(`${name} token`)))
    this.#tokens.set(name, token)
    if (!(await this.home.ask(keys => keys.setNew(name, id, this.home.ttl)))) return undefined
    this.#tokens.delete(name)
    return token
  }
}

class ExpireAfter extends RightLock {
  protected override async take(name: string, id: string): Promise<number | undefined> {
    const { home } = this
    if (!(await home.ask(keys => keys.setNew(name, id)))) return undefined
    await home.ask(keys => keys.expire(name, home.ttl))
    return home.ask(keys => keys.increment(`${name} token`))
  }
}

class FixedOwner extends RightLock {
  protected override newId(): string {
    return 'locked'
  }
}

class CompareInClient extends RightLock {
  override async release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    if ((await this.home.ask(keys => keys.get(name))) !== id) return undefined
    return this.home.ask(keys => keys.delete(name))
  }
}

class NoExpiry extends RightLock {
  protected override take(name: string, id: string): Promise<number | undefined> {
    return this.home.ask(keys => (keys.setNew(name, id) ? keys.increment(`${name} token`) : undefined))
  }

  protected override prolong(name: string, id: string): Promise<boolean> {
    return this.home.ask(keys => keys.get(name) === id)
  }
}

/** The server says that the lease is gone, and ends it soon. Each holder is notified in time, so nobody is harmed. */
class EndedByRenewal extends RightLock {
  protected override async prolong(name: string, id: string): Promise<boolean> {
    await this.home.ask(keys => keys.compare(name, id, this.home.ttl / 3))
    return false
  }
}

class DroppedWake extends QueueLock {
  protected override wake(): void {}

  protected override again(): number {
    return 3 * super.again()
  }
}

/** What the server says about its place is taken for true after a grant that was not accepted. */
class NeverBack extends QueueLock {
  #isForgotten = false

  protected override late(): void {
    this.#isForgotten = true
  }

  protected override again(): number {
    return this.#isForgotten ? FOREVER : super.again()
  }

  override async giveUp(name: string): Promise<void> {
    this.#isForgotten = false
    await super.giveUp(name)
  }
}

class ShortTurn extends QueueLock {
  protected override turnOf(): number {
    return super.turnOf(0)
  }
}

/** The message grants, and the server keeps the name for nobody. */
class GrantByMessage extends QueueLock {
  readonly #tokens = new Map<string, Wake>()

  override async acquire(name: string): Promise<Grant | undefined> {
    const { machine, ttl } = this.home
    const { id, token } = this.#tokens.get(name) ?? {}
    this.#tokens.delete(name)
    if (id !== undefined && token !== undefined) return { name, id, token, until: this.end(machine.now(), ttl) }
    return super.acquire(name)
  }

  protected override wake(keys: Keys, { client, name, id }: Place): void {
    if (keys.get(name) === undefined) this.home.wake(client, { name, id, token: keys.increment(`${name} token`) })
  }

  protected override woken(wake: Wake): void {
    this.#tokens.set(wake.name, wake)
    super.woken(wake)
  }
}

const queue = (lock: new (home: Home) => QueueLock, far = false): Partial<Contest> => ({
  lock: home => new lock(home),
  queue: true,
  far,
})

/** Variants with one mistake each. */
export const variants: Readonly<Record<string, Wrong>> = {
  'a resource that does not check tokens': { contest: { fence: false }, breaks: 'safety' },
  'a quorum whose holder does not write its token back': {
    contest: { lock: home => new NoWriteBack(home) },
    breaks: 'tokens',
  },
  'a deadline that is counted from the reply': { contest: { lock: home => new FromReply(home) }, breaks: 'notified' },
  'ends that are compared by the wall clocks of the clients': {
    contest: { lock: home => new WallClock(home) },
    breaks: 'notified',
  },
  'a release by name': { contest: { lock: home => new ReleaseByName(home) }, breaks: 'notified' },
  'a counter that is forgotten': { contest: { lock: home => new ForgottenCounter(home) }, breaks: 'tokens' },
  'a token that is given when the wait begins': {
    contest: { lock: home => new EarlyToken(home) },
    breaks: 'tokens',
  },
  'SETNX, then EXPIRE': { contest: { lock: home => new ExpireAfter(home) }, breaks: 'deadlock' },
  'one owner value for all': { contest: { lock: home => new FixedOwner(home) }, breaks: 'notified' },
  'GET, a comparison in the client, then DEL': {
    contest: { lock: home => new CompareInClient(home) },
    breaks: 'notified',
  },
  'a renewal that ends the lease': { contest: { lock: home => new EndedByRenewal(home) }, breaks: 'notified' },
  'a wake that is dropped': { contest: queue(DroppedWake), breaks: 'waiting' },
  'a waiter that never comes back': { contest: queue(NeverBack), breaks: 'waiting' },
  'a waiter far away that starves': { contest: queue(ShortTurn, true), breaks: 'waiting' },
  'a grant by message': { contest: queue(GrantByMessage), breaks: 'notified' },
  'a lock that never runs out': { contest: { lock: home => new NoExpiry(home) }, breaks: 'deadlock' },
}
