/** The settings of all functions. */

export const LAST_TOKEN: number = Number.MAX_SAFE_INTEGER

/** Milliseconds. */
export const LONGEST_LOCK = 1_000
const LOCK_TIMEOUT = `lock_timeout = ${LONGEST_LOCK}`

/** With -10, a time in an answer would be wrong by minutes. */
const EXACT = 'extra_float_digits = 1'

/**
 * A request that waits for a lock, such as for a table that is being rewritten, ends before its client gives up. Otherwise
 * its server process would wait for ever, each retry would add another, and no connection would be left.
 *
 * Plans must not depend on how full the tables were when they were planned. A bitmap has no order: to find the first ten
 * waiters, all would be sorted. No operators of other schemas are found, and nothing is compiled (JIT): that takes longer
 * than a request may, and PostgreSQL misjudges its cost for these plans. Times are not rounded, whatever the role has set.
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

/** Those of a function that only functions with `SETTINGS` call: it runs with theirs. */
export const INNER: string = `language plpgsql volatile
set search_path = pg_catalog
as $holdfast$
#variable_conflict use_column`

/** Otherwise a role that may create objects in a schema of the path could shadow functions, which then run with our rights. */
export const SAFE_PATH: string = 'set local search_path = pg_catalog, pg_temp;'

/**
 * A statement outside the functions. It has exact times, waits for a lock as long as they do, and finds only functions and
 * operators of PostgreSQL. All statements in one message are one transaction, in any mode of a pooler.
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

/** A crash must not lose a grant. It may lose other changes. */
export const DURABLE: string = `if current_setting('synchronous_commit') = 'off' then
      perform set_config('synchronous_commit', 'on', true);
    end if;`
export const FORGETFUL: string = "perform set_config('synchronous_commit', 'off', true);"

export const NOW: string = `_now constant timestamptz := clock_timestamp();
  _time constant double precision := extract(epoch from _now) * 1000;`
export const FLOOR: string = '_floor constant bigint := floor(_time * 1000);'

/** An interval of milliseconds. */
export function ms(expression: string): string {
  return `${expression} * interval '1 millisecond'`
}

/**
 * The name, in a search for all waiters. A search for one waiter has plain `name`. So each search has one index that fits. Of
 * two, PostgreSQL chose that of the queue for a waiter by its id, and read thousands of rows.
 */
export const QUEUE: string = "(name || '')"

/** One deletion of what has lapsed looks at, or deletes, at most this number of waiters. */
export const MOST_LAPSED = 1_000

/** Above the `seq` of every waiter. */
export const LAST_SEQ: string = '9223372036854775807'

/** The milliseconds from now until a time. */
export function since(moment: string): string {
  return `extract(epoch from ${moment} - _now) * 1000`
}

/**
 * A statement with inline values. Parameters cost more. postgres.js first requests their types, in another round trip. And
 * PostgreSQL takes a tenth longer for a lone request: the extended protocol has five messages in place of one.
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
