import type { BreakParameters, Busy, Claim, ClaimKey, Grant, Guarantees, Query, Store } from '../../src/store.ts'

type Verb = 'acquire' | 'renew' | 'annotate' | 'release'

/** May hold a request or a reply back, or lose it by rejecting. */
type Hook = (verb: Verb) => Promise<void> | void

/** A request and its answer. */
export interface Exchange {
  readonly verb: Verb
  /** By `performance.now()`, before the request left. */
  readonly sent: number
  /** False until the answer arrives, and if it was lost. */
  answered: boolean
  answer: Grant | Busy | boolean | 'released' | 'gone' | undefined
}

/** A network to a store: it records requests and replies, delays and loses them, even if the core gives up meanwhile. */
export class Wire implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  watch?: NonNullable<Store['watch']>
  readonly exchanges: Exchange[] = []
  onRequest: Hook = () => {}
  onReply: Hook = () => {}
  readonly #store: Store

  constructor(store: Store) {
    this.kind = store.kind
    this.guarantees = store.guarantees
    this.#store = store
    if (store.watch) this.watch = store.watch.bind(store)
  }

  /** When the last request was sent whose answer was a grant. */
  get lastGood(): number {
    const good = this.exchanges.findLast(({ answer }) => typeof answer === 'object' && answer.held)
    return good?.sent ?? Number.NEGATIVE_INFINITY
  }

  /** The number of requests of this kind that were sent. */
  sent(verb: Verb): number {
    return this.exchanges.filter(exchange => exchange.verb === verb).length
  }

  /** The number of those that were answered. */
  answered(verb: Verb): number {
    return this.exchanges.filter(exchange => exchange.verb === verb && exchange.answered).length
  }

  acquire(claim: Claim): Promise<Grant | Busy> {
    return this.#exchange('acquire', signal => this.#store.acquire(claim, signal))
  }

  renew(claim: Claim): Promise<Grant | undefined> {
    return this.#exchange('renew', signal => this.#store.renew(claim, signal))
  }

  annotate(claim: Claim): Promise<boolean> {
    return this.#exchange('annotate', signal => this.#store.annotate(claim, signal))
  }

  release(key: ClaimKey): Promise<'released' | 'gone'> {
    return this.#exchange('release', signal => this.#store.release(key, signal))
  }

  inspect(query: Query, signal: AbortSignal): ReturnType<Store['inspect']> {
    return this.#store.inspect(query, signal)
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#store.break(name, parameters, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]()
  }

  async #exchange<Answer extends Exchange['answer']>(
    verb: Verb,
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    const exchange: Exchange = { verb, sent: performance.now(), answered: false, answer: undefined }
    this.exchanges.push(exchange)
    await this.onRequest(verb)
    const answer = await ask(new AbortController().signal)
    await this.onReply(verb)
    exchange.answer = answer
    exchange.answered = true
    return answer
  }
}

/** A hook that holds back messages until it is opened. */
export function gate(): { hook: Hook; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { hook: () => promise, open: resolve }
}

/** A hook that loses the first message. */
export function loseFirst(verb: Verb): Hook {
  let lost = false
  return passing => {
    if (passing !== verb || lost) return
    lost = true
    throw new Error('the connection was reset')
  }
}
