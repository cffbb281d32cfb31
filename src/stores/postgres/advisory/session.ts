import { LeaseError } from '../../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../../contract/time.ts'
import { Batch } from '../../shared/batch.ts'
import { closed } from '../../shared/closed.ts'
import { openLink } from '../../shared/link.ts'
import type { Driver, Link } from '../client.ts'
import { failure } from '../failure.ts'
import { lookAt, makeSchema, unusable } from '../migrate.ts'
import type { Names } from '../names.ts'
import { LAST_TOKEN } from '../sql.ts'

/** The first version that ends a session which is silent. */
const ENDS_SESSIONS = 140_000

const LARGEST = 256

interface Request {
  readonly order: object
  readonly signal: AbortSignal
  resolve(answer: unknown[]): void
  reject(reason: unknown): void
}

/** A statement for which requests gather; it gets them as JSON with their places `i`, and answers a list by these. */
export type Statement = 'lock' | 'token' | 'unlock' | 'ttl' | 'note' | 'ping'

/**
 * The one connection of a store, whose end frees all that it holds. Never in a transaction, where the server would not
 * count its silence.
 */
export class Session {
  readonly #link: Link
  readonly #statements: Readonly<Record<Statement, string>>
  readonly #batches = new Map<Statement, Batch<Request>>()
  readonly #onLost: (session: Session) => void
  #isLost = false

  private constructor(link: Link, names: Names, onLost: (session: Session) => void) {
    this.#link = link
    this.#statements = statements(names)
    this.#onLost = onLost
    link.onEnd(() => this.#lose())
  }

  /** `onLost` is told once, when the connection has ended by itself or was closed. */
  static async open(
    driver: Driver,
    { names, create, ttl }: Wishes,
    onLost: (session: Session) => void,
    closing: AbortSignal,
  ): Promise<Session> {
    const prepare = async (link: Link): Promise<void> => {
      await checkLocks(link)
      const { format } = await lookAt(link, names)
      if (format === undefined && create) await makeSchema(link, names)
      else if (format === undefined) throw unusable(missing(names))
      const answer = await link.askInTime(
        "select json_build_array(current_setting('server_version_num')::integer, pg_is_in_recovery())::text, $0",
      )
      const [version, isStandby] = JSON.parse(String(answer)) as [number, boolean]
      // It grants locks, but has no tokens: and its session, once open, would be asked again and again.
      if (isStandby) throw Object.assign(new Error('the server is in recovery'), { code: '25006' })
      await link.askInTime(settings(ttl, version))
    }
    try {
      return new Session(await openLink(driver, prepare, closing), names, onLost)
    } catch (error) {
      throw closing.aborted ? closed() : failure(error, false)
    }
  }

  get isLost(): boolean {
    return this.#isLost || !this.#link.isOpen()
  }

  /** What the statement answers for one request. Rejects with a `LeaseError`, after 5 s at the latest. */
  put(statement: Statement, order: object, signal: AbortSignal): Promise<unknown[]> {
    let batch = this.#batches.get(statement)
    if (!batch) {
      batch = new Batch({ limit: LARGEST, send: (requests, next) => void this.#send(statement, requests).then(next) })
      this.#batches.set(statement, batch)
    }
    return new Promise((resolve, reject) => batch.add({ order, signal, resolve, reject }))
  }

  /** The first value that a query answers, which selects `$0` as its second. */
  async ask(text: string, values: readonly string[]): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${LONGEST_REQUEST} ms`)), LONGEST_REQUEST).unref()
    })
    try {
      return await Promise.race([this.#link.ask(text, values), silence])
    } catch (error) {
      const known = failure(error, true)
      // Nobody knows what it did, so nobody knows what is locked.
      if (known.code === 'OUTCOME_UNKNOWN') this.close()
      throw known
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    this.#link.close()
    this.#lose()
  }

  #lose(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#onLost(this)
  }

  async #send(statement: Statement, requests: readonly Request[]): Promise<void> {
    try {
      const orders = requests.map(({ order }, i) => ({ i, ...order }))
      const answers = JSON.parse(String(await this.ask(this.#statements[statement], [JSON.stringify(orders)])))
      if (answers?.length !== requests.length) {
        this.close() // which locks are held is unknown
        throw new LeaseError('OUTCOME_UNKNOWN', 'PostgreSQL did not answer all')
      }
      for (const [i, ...answer] of answers as [number, ...unknown[]][]) requests[i]?.resolve(answer)
    } catch (error) {
      for (const { reject } of requests) reject(error)
    }
  }
}

export interface Wishes {
  readonly names: Names
  readonly create: boolean
  readonly ttl: number
}

/**
 * Refuses servers whose advisory locks exclude nobody. A pooler gives the locks of one client to another, and both then
 * believe that they hold. CockroachDB's locks have no effect.
 */
async function checkLocks(link: Link): Promise<void> {
  const answer = await link.askInTime('select json_build_array(pg_backend_pid(), version())::text, $0')
  const [pid, version] = JSON.parse(String(answer)) as [number, string]
  if (version.startsWith('CockroachDB'))
    throw unusable('CockroachDB grants every advisory lock to everybody: use another store, or PostgreSQL itself')
  if (link.pid === undefined)
    throw unusable(
      'advisory locks need a connection of their own, which this client gives not, as postgres.js in a bundle from ' +
        'which the package postgres cannot be loaded: leave it out of the bundle, or use postgres(client)',
    )
  if (link.pid === pid) return
  throw unusable(
    'advisory locks belong to a connection, and a pooler (such as pgbouncer) stands between: connect to PostgreSQL ' +
      'itself, or use postgres(client), which works through poolers',
  )
}

function missing({ lease }: Names): string {
  return `the table of tokens beside ${lease} does not exist: make it with holdfast migrate --store URL, or give create: true`
}

/** All below the ttl, so that nothing that the server does for us keeps it from ending a session that is silent. */
function settings(ttl: number, version: number): string {
  const most = Math.max(Math.floor(ttl / 3), 1)
  const seconds = Math.max(Math.floor(ttl / 3_000), 1)
  return [
    'set search_path = pg_catalog, pg_temp',
    ...(version >= ENDS_SESSIONS ? [`set idle_session_timeout = ${ttl}`] : []),
    `set idle_in_transaction_session_timeout = ${most}`,
    `set statement_timeout = ${most}`,
    `set lock_timeout = ${most}`,
    `set tcp_keepalives_idle = ${seconds}`,
    `set tcp_keepalives_interval = ${seconds}`,
    'set tcp_keepalives_count = 2',
    `set tcp_user_timeout = ${ttl}`,
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'",
    'select null, $0',
  ].join(';\n')
}

function statements({ tokens }: Names): Record<Statement, string> {
  const asked = (columns: string): string => `from json_to_recordset($1::json) as a(i integer, ${columns})`
  return {
    // `materialized`: a lock that is asked for twice must be given back twice.
    lock: `with asked as materialized (
  select i, name, pg_try_advisory_lock(key::bigint) as is_ours ${asked('name text, key text')}
)
select json_agg(json_build_array(i, is_ours, token::text, owner, note, ttl))::text, $0
from asked left join ${tokens} using (name)`,
    token: `with asked as materialized (
  select * ${asked('name text, key text, owner text, note text, ttl integer')}
), given as (
  insert into ${tokens} as t (name, key, token, owner, note, ttl)
  select name, key::bigint, floor(extract(epoch from clock_timestamp()) * 1000000), owner, note, ttl
  from asked order by name
  on conflict (name) do update set key = excluded.key, token = greatest(t.token + 1, excluded.token),
    owner = excluded.owner, note = excluded.note, ttl = excluded.ttl where t.token < ${LAST_TOKEN}
  returning name, token
)
select json_agg(json_build_array(i, token::text))::text, $0 from asked left join given using (name)`,
    unlock: `select json_agg(json_build_array(i, pg_advisory_unlock(key::bigint)))::text, $0 ${asked('key text')}`,
    // For those who look only.
    ttl: `with asked as materialized (
  select * ${asked('name text, ttl integer')}
), changed as (
  update ${tokens} t set ttl = a.ttl from asked a where t.name = a.name
)
select json_agg(json_build_array(i))::text, $0 from asked`,
    // The token tells a late one: another may have been granted the name since.
    note: `with asked as materialized (
  select * ${asked('name text, token text, note text')}
), changed as (
  update ${tokens} t set note = a.note from asked a where t.name = a.name and t.token = a.token::bigint
  returning t.name
)
select json_agg(json_build_array(i, name in (select name from changed)))::text, $0 from asked`,
    ping: `select json_agg(json_build_array(i))::text, $0 ${asked('x text')}`,
  }
}
