export const LAST_TOKEN: number = Number.MAX_SAFE_INTEGER

/** The longest wait for a lock in milliseconds. */
export const LONGEST_LOCK = 1_000
const LOCK_TIMEOUT = `lock_timeout = ${LONGEST_LOCK}`

/** With -10, a time in an answer could be wrong by minutes. */
const EXACT = 'extra_float_digits = 1'

/**
 * The settings of all functions. A request that waits for a lock, for example while a table is rewritten, ends before its
 * client gives up. Otherwise its server process would wait forever, each retry would add another one, and no connection
 * would be left.
 *
 * Plans must not depend on how full the tables were when they were planned. A bitmap has no order: to find the first ten
 * waiters, it would sort all of them. Operators of other schemas are not found. Queries are not compiled (JIT), because
 * that takes longer than a request may take, and PostgreSQL misjudges its cost for these plans. Times are not rounded,
 * whatever the role has set.
 */
export const SETTINGS: string = `language plpgsql volatile
set search_path = pg_catalog
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set jit = off
set ${EXACT}
set ${LOCK_TIMEOUT}
as $holdfast$
#variable_conflict use_column`

/** The settings of a function that is called only by functions with `SETTINGS`. It runs with theirs. */
export const INNER: string = `language plpgsql volatile
set search_path = pg_catalog
as $holdfast$
#variable_conflict use_column`

/**
 * Restricts the search path. Otherwise a role that may create objects in a schema of the path could shadow functions, which
 * would then run with our rights.
 */
export const SAFE_PATH: string = 'set local search_path = pg_catalog, pg_temp;'

/**
 * Makes a statement outside the functions. It has exact times, waits for a lock as long as the functions do, and finds only
 * functions and operators of PostgreSQL. All statements in one message are one transaction, in any mode of a pooler.
 */
export function inTime(statement: string, values: readonly string[]): string {
  return `${SAFE_PATH}\nset local ${EXACT};\nset local ${LOCK_TIMEOUT};\n${withValues(statement, values)}`
}

export const BEGIN: string = `begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'the transaction is read-only' using errcode = 'read_only_sql_transaction';
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the isolation level is %', current_setting('transaction_isolation') using errcode = 'HF001';
  end if;`

/** Makes a grant durable: a crash must not lose it. Other changes may be lost. */
export const DURABLE: string = `if current_setting('synchronous_commit') = 'off' then
      perform set_config('synchronous_commit', 'on', true);
    end if;`
export const FORGETFUL: string = "perform set_config('synchronous_commit', 'off', true);"

export const NOW: string = `_now constant timestamptz := clock_timestamp();
  _time constant double precision := extract(epoch from _now) * 1000;`
export const FLOOR: string = '_floor constant bigint := floor(_time * 1000);'

/** An interval in milliseconds. */
export function ms(expression: string): string {
  return `${expression} * interval '1 millisecond'`
}

/**
 * The name, as a search for all waiters compares it. A search for one waiter compares `name`. So only one index fits each
 * search. If two fitted, PostgreSQL chose that of the queue for a search by id, and read thousands of rows.
 */
export const QUEUE: string = "(name || '')"

/** The largest number of lapsed waiters that one deletion reads or deletes. */
export const MOST_LAPSED = 1_000

/** A number above the `seq` of every waiter. */
export const LAST_SEQ: string = '9223372036854775807'

/** The milliseconds from now until this time. */
export function since(moment: string): string {
  return `extract(epoch from ${moment} - _now) * 1000`
}

/**
 * Makes a statement with inline values, because parameters cost more. For them, postgres.js first requests their types, in
 * another round trip. PostgreSQL needs a tenth more time for a single request: the extended protocol has five messages
 * instead of one.
 */
export function withValues(text: string, values: readonly string[]): string {
  return text.replace(/\$(\d+)/g, (place, i) => {
    const value = values[i - 1]
    return value === undefined ? place : literal(value)
  })
}

/** A literal that means the same with `standard_conforming_strings` on and off. */
export function literal(value: string): string {
  return `E'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
