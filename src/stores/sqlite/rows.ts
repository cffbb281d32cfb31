import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { difference } from '../rules/difference.ts'
import { type Holder, type NameState, UNUSED, type Waiter } from '../rules/state.ts'

/**
 * The number of rows that are checked for each new name, in rotation. So rows of dead processes are deleted as fast as new
 * ones are added.
 */
const SWEPT = 2

type HolderRow = Omit<Holder, 'slots'> & { readonly slots: string }
type WaiterRow = Omit<Waiter, 'isPassed'> & { readonly isPassed: number }

/** Reads and writes the rows of a file, over one connection. */
export class Rows {
  readonly #sql: ReturnType<typeof prepare>
  #sweptHolder = { name: '', id: '' }
  #sweptWaiter = 0

  constructor(database: DatabaseSync) {
    this.#sql = prepare(database)
  }

  /** The state of a name, without its token and the claims that were withdrawn. */
  state(name: string): NameState {
    const holders = (this.#sql.holders.all(name) as unknown as HolderRow[]).map(holder)
    const changed = this.#sql.queue.get(name)?.changed
    if (changed === undefined) return holders.length > 0 ? { ...UNUSED, holders } : UNUSED
    const waiters = (this.#sql.waiters.all(name) as unknown as WaiterRow[]).map(waiter)
    return { ...UNUSED, holders, waiters, changed: Number(changed) }
  }

  /** Like `state`, with only the first two waiters that count. */
  head(name: string, changed: number, now: number): NameState {
    const holders = (this.#sql.holders.all(name) as unknown as HolderRow[]).map(holder)
    const waiters = (this.#sql.head.all(name, now) as unknown as WaiterRow[]).map(waiter)
    return { ...UNUSED, holders, waiters, changed }
  }

  /** Writes what has changed of a name. */
  save(name: string, before: NameState, after: NameState): void {
    const [holders, waiters] = [difference(before.holders, after.holders), difference(before.waiters, after.waiters)]
    for (const { id } of holders.ended) this.#sql.deleteHolder.run(name, id)
    for (const { id, owner, note, ttl, limit, token, slots, expires } of [...holders.added, ...holders.changed])
      this.#sql.putHolder.run(name, id, owner, note, ttl, limit, token, slots.join(), expires)
    for (const { id } of waiters.ended) this.#sql.deleteWaiter.run(name, id)
    for (const { id, owner, note, ttl, limit, units, grace, lapses, isPassed } of [
      ...waiters.added,
      ...waiters.changed,
    ])
      this.#sql.putWaiter.run(name, id, owner, note, ttl, limit, units, grace, lapses, Number(isPassed))
    // Without waiters, the time of the last change is not needed.
    if (after.waiters.length === 0) {
      if (before.waiters.length > 0) this.#sql.deleteQueue.run(name)
    } else if (before.waiters.length === 0 || after.changed !== before.changed)
      this.#sql.putQueue.run(name, Math.max(after.changed, 0))
  }

  /** The last token of all names. */
  token(): number {
    return Number(this.#sql.token.get()?.token)
  }

  putToken(token: number): void {
    this.#sql.putToken.run(token)
  }

  /** Is the claim refused, and until when? */
  gone(name: string, id: string): NameState['gone'] {
    const row = this.#sql.tombstone.get(name, id)
    return row ? new Map([[id, Number(row.until)]]) : UNUSED.gone
  }

  /**
   * Refuses the claim from `now` on. Old tombstones are deleted, and those from before the clock was set back end sooner.
   */
  bury(name: string, id: string, now: number): void {
    const until = now + LONGEST_REQUEST
    this.#sql.shortenTombstones.run(until, until)
    this.#sql.sweepTombstones.run(now)
    this.#sql.putTombstone.run(name, id, until)
  }

  /** The names of some leases and positions that have ended. Successive calls check all rows in turn. */
  ended(now: number): Set<string> {
    const { name, id } = this.#sweptHolder
    const holders = this.#sql.holdersAfter.all(name, id) as { name: string; id: string; ends: number }[]
    const waiters = this.#sql.waitersAfter.all(this.#sweptWaiter) as { name: string; seq: number; ends: number }[]
    this.#sweptHolder = holders[SWEPT - 1] ?? { name: '', id: '' }
    this.#sweptWaiter = waiters[SWEPT - 1]?.seq ?? 0
    return new Set([...holders, ...waiters].filter(({ ends }) => ends <= now).map(row => row.name))
  }

  /** The names from this name on, in order. */
  names(from: string, most: number): string[] {
    return this.#sql.names.all(from, from, most).map(row => String(row.name))
  }

  /** The names with waiters that have changed since this time. */
  changedSince(since: number): { name: string; changed: number }[] {
    return this.#sql.changed.all(since) as { name: string; changed: number }[]
  }
}

// Each property is copied separately: spreading a row of SQLite takes five times as long.
function holder({ id, owner, note, ttl, limit, token, slots, expires }: HolderRow): Holder {
  return { id, owner, note, ttl, limit, token, slots: slots.split(',').map(Number), expires }
}

function waiter({ id, owner, note, ttl, limit, units, grace, lapses, isPassed }: WaiterRow): Waiter {
  return { id, owner, note, ttl, limit, units, grace, lapses, isPassed: isPassed === 1 }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string): StatementSync => database.prepare(text)
  const oldest = `select seq from tombstone order by seq limit ${SWEPT}`
  const waiters = `select id, owner, note, ttl, slot_limit as "limit", units, grace, lapses, passed as isPassed
    from waiter where name = ?`
  return {
    holders: sql(
      `select id, owner, note, ttl, slot_limit as "limit", token, slots, expires from holder where name = ?`,
    ),
    putHolder: sql('insert or replace into holder values (?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    deleteHolder: sql('delete from holder where name = ? and id = ?'),
    holdersAfter: sql(`select name, id, expires as ends from holder where (name, id) > (?, ?)
      order by name, id limit ${SWEPT}`),
    waiters: sql(`${waiters} order by seq`),
    head: sql(`${waiters} and not passed and lapses > ? order by seq limit 2`),
    putWaiter: sql(`insert into waiter (name, id, owner, note, ttl, slot_limit, units, grace, lapses, passed)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (name, id) do update set owner = excluded.owner, note = excluded.note, ttl = excluded.ttl,
        slot_limit = excluded.slot_limit, units = excluded.units, grace = excluded.grace, lapses = excluded.lapses, passed = excluded.passed`),
    deleteWaiter: sql('delete from waiter where name = ? and id = ?'),
    waitersAfter: sql(`select seq, name, lapses as ends from waiter where seq > ? order by seq limit ${SWEPT}`),
    queue: sql('select changed from queue where name = ?'),
    putQueue: sql('insert or replace into queue values (?, ?)'),
    deleteQueue: sql('delete from queue where name = ?'),
    changed: sql('select name, changed from queue where changed > ?'),
    names: sql(`select name from holder where name >= ? union select name from queue where name >= ?
      order by name limit ?`),
    token: sql('select token from counter'),
    putToken: sql('update counter set token = ?'),
    tombstone: sql('select until from tombstone where name = ? and id = ?'),
    putTombstone: sql('insert or replace into tombstone (name, id, until) values (?, ?, ?)'),
    shortenTombstones: sql(`update tombstone set until = ? where seq in (${oldest}) and until > ?`),
    sweepTombstones: sql(`delete from tombstone where seq in (${oldest}) and until <= ?`),
  }
}
