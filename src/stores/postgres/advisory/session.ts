import { invalid } from '../../../contract/check.ts'
import { LeaseError } from '../../../contract/errors.ts'
import { Batch } from '../../wire/batch.ts'
import { openConnection } from '../../wire/connection.ts'
import { closed, unfit } from '../../wire/failure.ts'
import { inTime } from '../../wire/timeouts.ts'
import type { PostgresConnection, PostgresDriver } from '../connection.ts'
import { failure } from '../failure.ts'
import { prepare } from '../migrate.ts'
import type { Names } from '../names.ts'
import { LAST_TOKEN } from '../sql.ts'

/** The first version of PostgreSQL that ends idle sessions. */
const ENDS_SESSIONS = 140_000

const LARGEST = 256

interface Request {
  readonly parameters: object
  readonly signal: AbortSignal
  resolve(answer: unknown[]): void
  reject(reason: unknown): void
}

/** A statement that requests share. It receives them as JSON, numbered `i`, and returns a list of `[i, answer …]`. */
export type Statement = 'lock' | 'token' | 'unlock' | 'ttl' | 'note' | 'ping'

/**
 * The one connection of a store. All leases end with it. It is never in a transaction, because the server would not count
 * it as idle then.
 */
export class Session {
  readonly #connection: PostgresConnection
  readonly #statements: Readonly<Record<Statement, string>>
  readonly #batches = new Map<Statement, Batch<Request>>()
  readonly #onLost: (session: Session) => void
  #isLost = false

  private constructor(connection: PostgresConnection, names: Names, onLost: (session: Session) => void) {
    this.#connection = connection
    this.#statements = statements(names)
    this.#onLost = onLost
    connection.onEnd(() => this.#lose())
  }

  /** Opens the session. Calls `onLost` once, when the connection has ended by itself or was closed. */
  static async open(
    driver: PostgresDriver,
    { names, create, ttl }: AdvisoryStoreOptions,
    onLost: (session: Session) => void,
    closing: AbortSignal,
  ): Promise<Session> {
    const first = async (connection: PostgresConnection): Promise<void> => {
      await checkLocks(connection)
      await prepare(connection, names, create)
      const answer = await connection.askInTime(
        "select json_build_array(current_setting('server_version_num')::integer, pg_is_in_recovery())::text, $0",
      )
      const [version, isStandby] = JSON.parse(String(answer)) as [number, boolean]
      // A standby grants locks but has no tokens, and an open session would be used for every later request.
      if (isStandby) throw Object.assign(new Error('the server is in recovery'), { code: '25006' })
      await connection.askInTime(settings(ttl, version))
    }
    try {
      return new Session(await openConnection(driver, first, closing), names, onLost)
    } catch (error) {
      throw closing.aborted ? closed() : failure(error, false)
    }
  }

  get isLost(): boolean {
    return this.#isLost || !this.#connection.isOpen()
  }

  /** Resolves to the answer of the statement to one request. Rejects with a `LeaseError`, after at most 5 s. */
  put(statement: Statement, parameters: object, signal: AbortSignal): Promise<unknown[]> {
    let batch = this.#batches.get(statement)
    if (!batch) {
      batch = new Batch({ limit: LARGEST, send: (requests, next) => void this.#send(statement, requests).then(next) })
      this.#batches.set(statement, batch)
    }
    return new Promise((resolve, reject) => batch.add({ parameters, signal, resolve, reject }))
  }

  /** Resolves to the first value of a query. Its second value must be `$0`. */
  async ask(text: string, values: readonly string[]): Promise<unknown> {
    try {
      return await inTime(this.#connection.ask(text, values))
    } catch (error) {
      const known = failure(error, true)
      // The outcome is unknown, so it is unknown which keys are locked.
      if (known.code === 'OUTCOME_UNKNOWN') this.close()
      throw known
    }
  }

  close(): void {
    this.#connection.close()
    this.#lose()
  }

  #lose(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#onLost(this)
  }

  async #send(statement: Statement, requests: readonly Request[]): Promise<void> {
    try {
      const all = requests.map(({ parameters }, i) => ({ i, ...parameters }))
      const answers = JSON.parse(String(await this.ask(this.#statements[statement], [JSON.stringify(all)])))
      if (answers?.length !== requests.length) {
        this.close() // it is unknown which locks are held
        throw new LeaseError('OUTCOME_UNKNOWN', 'PostgreSQL answered only some of the requests')
      }
      for (const [i, ...answer] of answers as [number, ...unknown[]][]) requests[i]?.resolve(answer)
    } catch (error) {
      for (const { reject } of requests) reject(error)
    }
  }
}

export interface AdvisoryStoreOptions {
  readonly names: Names
  readonly create: boolean
  readonly ttl: number
}

/**
 * Refuses servers whose advisory locks do not exclude others. A pooler gives the locks of one client to another, so both
 * believe that they hold. Locks of CockroachDB have no effect.
 */
async function checkLocks(connection: PostgresConnection): Promise<void> {
  const answer = await connection.askInTime('select json_build_array(pg_backend_pid(), version())::text, $0')
  const [pid, version] = JSON.parse(String(answer)) as [number, string]
  if (version.startsWith('CockroachDB'))
    throw unfit('CockroachDB grants every advisory lock to every client: use another store, or PostgreSQL itself')
  if (connection.pid === undefined)
    throw invalid(
      'advisory locks need their own connection, and a bundled postgres.js cannot open one: exclude the package ' +
        'postgres from the bundle, or use postgres(client)',
    )
  if (connection.pid === pid) return
  throw invalid(
    'advisory locks belong to a connection, and this one goes through a pooler such as pgbouncer: connect to ' +
      'PostgreSQL directly, or use postgres(client), which works through poolers',
  )
}

/**
 * The settings of the session. All timeouts are below the ttl, so that none of our statements keeps the server from ending
 * an idle session.
 */
function settings(ttl: number, version: number): string {
  const most = Math.max(Math.floor(ttl / 3), 1)
  const seconds = Math.max(Math.floor(ttl / 3_000), 1)
  // Where the system has no `tcp_user_timeout`, as on macOS, a session ends after this many keepalives: not before the ttl.
  const count = Math.ceil(ttl / (seconds * 1_000))
  return [
    'set search_path = pg_catalog, pg_temp',
    ...(version >= ENDS_SESSIONS ? [`set idle_session_timeout = ${ttl}`] : []),
    `set idle_in_transaction_session_timeout = ${most}`,
    `set statement_timeout = ${most}`,
    `set lock_timeout = ${most}`,
    `set tcp_keepalives_idle = ${seconds}`,
    `set tcp_keepalives_interval = ${seconds}`,
    `set tcp_keepalives_count = ${count}`,
    `set tcp_user_timeout = ${ttl}`,
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'",
    'select null, $0',
  ].join(';\n')
}

function statements({ tokens }: Names): Record<Statement, string> {
  const asked = (columns: string): string => `from json_to_recordset($1::json) as a(i integer, ${columns})`
  return {
    // `materialized` is needed because a lock that is acquired twice must be released twice.
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
    // This ttl is only for inspection.
    ttl: `with asked as materialized (
  select * ${asked('name text, ttl integer')}
), changed as (
  update ${tokens} t set ttl = a.ttl from asked a where t.name = a.name
)
select json_agg(json_build_array(i))::text, $0 from asked`,
    // The token identifies stale requests: the name may have been granted to another claim since.
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
