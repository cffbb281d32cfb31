import { deadline, type Grant, type Home, type Lock } from './lock.ts'

/** The number of servers. A majority of them decides. */
export const SERVERS = 5
const MAJORITY = 3

/** Redlock with fencing tokens: each server counts, and the holder writes the highest count back to a majority. */
export class QuorumLock implements Lock {
  readonly home: Home

  constructor(home: Home) {
    this.home = home
  }

  async acquire(name: string): Promise<Grant | undefined> {
    const { ttl, machine } = this.home
    const id = this.home.newId()
    const sent = machine.now()
    const votes = await this.#all(server => this.#vote(server, name, id))
    const token = Math.max(...votes.values())
    const until = deadline(sent, ttl)
    if (votes.size >= MAJORITY && (await this.settle(name, id, votes, token)) && machine.now() < until)
      return { name, id, token, until }
    await this.release({ name, id })
    return undefined
  }

  async renew({ name, id }: Grant): Promise<number | undefined> {
    const { ttl, machine } = this.home
    const sent = machine.now()
    const answers = await this.#all(server => this.home.ask(keys => keys.compare(name, id, ttl), server))
    if (count(answers, true) >= MAJORITY) return deadline(sent, ttl)
    if (count(answers, false) >= MAJORITY) return undefined
    throw new Error('no majority answered')
  }

  release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    return this.#all(server => this.home.ask(keys => keys.compare(name, id), server))
  }

  /** Does a majority of the servers that voted have this token now? */
  protected async settle(
    name: string,
    id: string,
    votes: ReadonlyMap<number, number>,
    token: number,
  ): Promise<boolean> {
    if (count(votes, token) >= MAJORITY) return true
    const commit = (server: number): Promise<boolean> =>
      this.home.ask(keys => {
        if (keys.get(name) !== id) return false
        keys.set(`${name} token`, String(Math.max(token, Number(keys.get(`${name} token`)))))
        return true
      }, server)
    return count(await this.#all(commit, [...votes.keys()]), true) >= MAJORITY
  }

  #vote(server: number, name: string, id: string): Promise<number> {
    return this.home.ask(keys => {
      if (!keys.setNew(name, id, this.home.ttl)) throw new Error('held')
      return keys.increment(`${name} token`)
    }, server)
  }

  async #all<Answer>(
    ask: (server: number) => Promise<Answer>,
    servers: readonly number[] = Array.from({ length: SERVERS }, (_, server) => server),
  ): Promise<Map<number, Answer>> {
    const answers = new Map<number, Answer>()
    await Promise.allSettled(servers.map(async server => answers.set(server, await ask(server))))
    return answers
  }
}

function count<Answer>(answers: ReadonlyMap<number, Answer>, wanted: Answer): number {
  return [...answers.values()].filter(answer => answer === wanted).length
}
