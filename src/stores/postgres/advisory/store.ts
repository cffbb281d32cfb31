import { createHash } from 'node:crypto'
import { invalid, show } from '../../../contract/check.ts'
import { LeaseError } from '../../../contract/errors.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
} from '../../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../../contract/time.ts'
import { closed, unfit } from '../../wire/failure.ts'
import { NEVER } from '../../wire/timeouts.ts'
import type { PostgresDriver } from '../connection.ts'
import { exhausted } from '../failure.ts'
import { guaranteesOf } from './guarantees.ts'
import { type Holding, Holdings } from './holdings.ts'
import { inspection } from './inspection.ts'
import { type AdvisoryStoreOptions, Session } from './session.ts'

/** Milliseconds after which a waiter asks again. The time is random between these. */
const [SHORTEST_POLL, LONGEST_POLL] = [25, 75]

export class AdvisoryStore implements Store {
  readonly kind = 'postgres advisory'
  readonly guarantees: Guarantees
  readonly #driver: PostgresDriver
  readonly #options: AdvisoryStoreOptions
  readonly #holdings: Holdings
  #opening: Promise<Session> | undefined
  #session: Session | undefined
  readonly #end = new AbortController()

  constructor(driver: PostgresDriver, options: AdvisoryStoreOptions) {
    this.guarantees = guaranteesOf(options.ttl)
    this.#driver = driver
    this.#options = options
    this.#holdings = new Holdings(holding => void this.#unlock(holding).catch(() => {}))
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#whileOpen(signal, () => this.#acquire(claim, signal))
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#whileOpen(signal, async () => {
      this.#checkTtl(claim.ttl)
      const holding = this.#holdings.held(this.#keyOf(claim.name), claim.id)
      return holding && this.#refresh(holding, claim, signal)
    })
  }

  annotate({ name, id, note }: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#whileOpen(signal, async () => {
      const holding = this.#holdings.held(this.#keyOf(name), id)
      if (!holding) return false
      const [wasThere] = (await holding.session?.put('note', { name, token: `${holding.token}`, note }, signal)) ?? []
      if (!this.#holdings.isHeld(holding)) return false
      if (wasThere !== true)
        throw new LeaseError(
          'STORE_UNAVAILABLE',
          `another program deleted the row of ${show(name)}, so nothing was written: do not delete rows`,
        )
      holding.claim = { ...holding.claim, note }
      return true
    })
  }

  release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#whileOpen(signal, async () => {
      const holding = this.#holdings.of(this.#keyOf(name))
      if (holding?.claim.id === id && holding.state === 'held') {
        await this.#unlock(holding)
        return 'released'
      }
      if (holding?.claim.id === id) await holding.left
      this.#holdings.withdraw(id)
      return 'gone'
    })
  }

  onLoss({ name, id }: ClaimKey, lost: () => void): () => void {
    const holding = this.#holdings.held(this.#keyOf(name), id)
    let isOff = false
    if (holding) holding.onLost = lost
    else queueMicrotask(() => isOff || lost())
    return () => {
      isOff = true
      if (holding) holding.onLost = undefined
    }
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    const session = await this.#whileOpen(signal, () => this.#open())
    yield* inspection(session, this.#options.names, query, signal)
  }

  break(_name: string, _: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#whileOpen(signal, async () => {
      const cure = 'end the process of the holder, or its session with pg_terminate_backend'
      throw unfit(`a break of one advisory lock would end all leases of its session: ${cure}`)
    })
  }

  /**
   * Closes the store. Leases that are still held are released only at the end of their ttl, because work may still rely on
   * them.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    this.#holdings.onceIdle(() => this.#session?.close())
  }

  async #acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.#checkTtl(claim.ttl)
    if (this.#holdings.isWithdrawn(claim.id)) return { held: false, retryAfter: LONGEST_REQUEST }
    const key = this.#keyOf(claim.name)
    const asked = performance.now()
    // The server would grant a session the same lock twice, so this process decides first.
    for (;;) {
      const other = this.#holdings.of(key)
      if (!other) return this.#holdings.ask(claim, key, holding => this.#take(holding, asked, signal))
      const isOwn = other.claim.id === claim.id
      if (other.state === 'leaving') await other.left?.catch(() => {})
      else if (other.state === 'asked') {
        const answer = await other.answer?.catch(() => undefined)
        // A grant lasts only from the time of the other attempt. The refusal of a withdrawn claim says nothing about the name.
        if (answer && !answer.held && (isOwn || !this.#holdings.isWithdrawn(other.claim.id))) return answer
      } else {
        const grant = isOwn ? await this.#refresh(other, claim, signal, false) : busy(claim, other)
        if (grant) return grant
      }
      this.#check(signal)
    }
  }

  /** `asked`: when the claim was received. It may have been withdrawn since, and that is remembered only for a while. */
  async #take(holding: Holding, asked: number, signal: AbortSignal): Promise<Grant | Busy> {
    const { claim, key } = holding
    const { name, id, owner, note, ttl } = claim
    const checkTime = (): void => {
      if (performance.now() > asked + requestLimit(ttl))
        throw new LeaseError('OUTCOME_UNKNOWN', 'the lock was granted too late and is released')
    }
    try {
      const session = await this.#open()
      signal.throwIfAborted()
      holding.session = session
      const [isOurs, ...last] = await session.put('lock', { name, key }, NEVER)
      holding.isLocked = isOurs === true
      if (!holding.isLocked) return busyWith(claim, last as LastGrant)
      checkTime() // this comes first: without a token the lease does not count as held
      const [token] = await session.put('token', { name, key, owner, note, ttl }, NEVER)
      if (typeof token !== 'string') throw exhausted()
      if (session.isLost) throw new LeaseError('OUTCOME_UNKNOWN', 'the session ended meanwhile, and the lock with it')
      if (this.#holdings.isWithdrawn(id)) return { held: false, retryAfter: LONGEST_REQUEST }
      checkTime()
      this.#holdings.hold(holding, BigInt(token), asked + ttl)
      return { held: true, token: holding.token, ttl }
    } finally {
      // The statement may have locked before it failed. The server does not undo that.
      if (holding.state === 'asked') {
        if (holding.session && holding.isLocked !== false) this.#unlock(holding).catch(() => {})
        else this.#holdings.remove(holding)
      }
    }
  }

  /**
   * Renews the lease. Any statement shows the server that the session is alive. A lease that is not renewed is ended by a
   * timer of this process.
   */
  async #refresh(
    holding: Holding,
    { name, ttl }: Claim,
    signal: AbortSignal,
    mayShorten = true,
  ): Promise<Grant | undefined> {
    const sent = performance.now()
    // A stale copy of the acquire request must not shorten a lease that a renewal has extended since.
    const isNew = ttl !== holding.claim.ttl && (mayShorten || sent + ttl > holding.expires)
    await holding.session?.put(isNew ? 'ttl' : 'ping', isNew ? { name, ttl } : {}, signal)
    if (!this.#holdings.isHeld(holding)) return undefined
    if (mayShorten || sent + ttl > holding.expires) this.#holdings.prolong(holding, ttl, sent)
    return { held: true, token: holding.token, ttl }
  }

  /** Unlocks a key. It is called exactly once for each granted lock. */
  #unlock(holding: Holding): Promise<void> {
    holding.state = 'leaving'
    holding.left ??= this.#sendUnlock(holding)
    return holding.left
  }

  async #sendUnlock(holding: Holding): Promise<void> {
    const { key, session } = holding
    try {
      const [wasOurs] = (await session?.put('unlock', { key }, NEVER)) ?? []
      // A lock that was certainly granted is missing, so no lock of this session is certain.
      if (wasOurs !== true && holding.isLocked) session?.close()
    } catch (error) {
      session?.close()
      throw error
    } finally {
      this.#holdings.remove(holding)
    }
  }

  #open(): Promise<Session> {
    if (this.#session && !this.#session.isLost) return Promise.resolve(this.#session)
    this.#opening ??= this.#tryToOpen().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #tryToOpen(): Promise<Session> {
    const onLost = (lost: Session): void => this.#holdings.lose(lost)
    const session = await Session.open(this.#driver, this.#options, onLost, this.#end.signal)
    if (this.#end.signal.aborted) {
      session.close()
      throw closed()
    }
    this.#session = session
    return session
  }

  async #whileOpen<Answer>(signal: AbortSignal, ask: () => Promise<Answer>): Promise<Answer> {
    this.#check(signal)
    try {
      return await ask()
    } catch (error) {
      throw this.#end.signal.aborted ? closed() : error
    }
  }

  #check(signal: AbortSignal): void {
    signal.throwIfAborted()
    if (this.#end.signal.aborted) throw closed()
  }

  #checkTtl(ttl: number): void {
    const most = this.#options.ttl
    if (ttl > most)
      throw invalid(
        `the ttl of ${ttl} ms is longer than the ${most} ms of the connection: create the store with { ttl: ${ttl} }`,
      )
  }

  /** The key of a name: 64 bits of a hash of the name and of the table of its tokens. */
  #keyOf(name: string): string {
    const hash = createHash('sha256').update(`${this.#options.names.tokens}\0${name}`).digest()
    return hash.readBigInt64BE().toString()
  }
}

/** The row of the last claim that was granted the name, if there was one. */
type LastGrant = [token: string | null, owner: string, note: string, ttl: number]

function busyWith({ name }: Claim, [token, owner, note, ttl]: LastGrant): Busy {
  // The new holder may not have published its details yet.
  const holder: LeaseRecord | undefined =
    token === null ? undefined : { name, state: 'held', token: BigInt(token), owner, note, remaining: ttl }
  return { held: false, retryAfter: poll(), holder }
}

function busy({ name }: Claim, { claim, token, state, expires }: Holding): Busy {
  const { owner, note } = claim
  const remaining = Math.max(expires - performance.now(), 1)
  // Two names with the same key exclude each other.
  const isNamed = state === 'held' && claim.name === name
  return {
    held: false,
    retryAfter: poll(),
    holder: isNamed ? { name, state, token, owner, note, remaining } : undefined,
  }
}

function poll(): number {
  return SHORTEST_POLL + (LONGEST_POLL - SHORTEST_POLL) * Math.random()
}
