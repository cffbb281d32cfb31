import { randomInt } from 'node:crypto'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Holder } from '../rules/state.ts'
import type { MysqlConnection } from './connection.ts'
import { isLocked, readOnly } from './failure.ts'
import { Entry, type Lease, type Place } from './leases.ts'

/** The server's time in microseconds at this point of a statement. `now()` would be the time of its start. */
export const TIME = 'cast(unix_timestamp(sysdate(6)) * 1000000 as signed)'

const COLUMNS = ['name', 'holders', 'token', 'changed', 'expires', 'stamp']
const PLACE = 'name, id, owner, note, seq, lapses, gone, ttl, slot_limit, units, grace, passed'.split(', ')

/** Milliseconds for which the parts of a batch are tried after others had locked some of its rows. */
const LONGEST_WRITE = 1_000

/** The largest number of positions in one deletion or update, because a statement must fit into a packet. */
const MOST_ENDED = 1_000

/** The largest number of holders in one statement, unless one name has more. Each takes up to 1,500 bytes. */
const MOST_HOLDERS = 500

/** An empty text. The mode EMPTY_STRING_IS_NULL would read `''` as null. */
const NONE = "x''"

/** The time that a row remains after its last use, in microseconds. */
const DAY = 86_400_000_000

/** Encodes a value in hexadecimal digits. They mean the same in any mode and character set of the session. */
export function hex(text: string): string {
  return `x'${Buffer.from(text).toString('hex')}'`
}

const text = (value: string): string => `_utf8mb4 ${hex(value)}`
const micros = (time: number): number => Math.min(Math.round(time * 1_000), Number.MAX_SAFE_INTEGER)

/** A derived table `v` of these values. */
function values(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const selects = rows.map((row, i) => `select ${row.map((v, k) => (i ? v : `${v} as ${columns[k]}`)).join(', ')}`)
  return `(${selects.join(' union all ')}) v`
}

/** Does a server refuse writes? `read_only` is a number, or since MariaDB 12 a word such as `NO_LOCK`. */
export const readOnlyOf = (setting = '@@global.read_only'): string => `${setting} not in ('0', 'OFF')`

/** The part of a queue to read. */
export interface Line {
  readonly names: readonly string[]
  /** The ids of claims whose positions are read wherever they are. `undefined`: all positions are read. */
  readonly own: readonly string[] | undefined
}

/** The number of positions that are read from the head of a queue. Behind them the exact number does not matter. */
const MOST_PLACES = 1_000

/**
 * Reads the rows of some names as one snapshot, and the server's time. The row without a name has the last deleted token.
 * The queue may be long, and requests of holders do not need it.
 */
export async function read(
  connection: MysqlConnection,
  table: string,
  names: readonly string[],
  { names: lines, own }: Line = { names, own: undefined },
): Promise<Entry[]> {
  const all = ['', ...names].map(hex).join(', ')
  // The time comes last. With a time from before the snapshot, a lease that was just renewed would seem to last longer than
  // its ttl, as if the clock had been set back. An earlier snapshot does no harm, because the write compares stamps.
  const rows = await connection.rows(`select 1, name, null, holders, null, token, changed, stamp, 0, 0, 0, 0, 0
    from ${table} where name in (${all})
    ${lines.length > 0 ? `union all ${placesOf(table, lines, own)}` : ''}
    union all select 0, null, null, null, null, ${TIME}, ${readOnlyOf()}, 0, 0, 0, 0, 0, 0`)
  const leases = new Map<string, Lease>()
  const places = new Map<string, Place[]>(names.map(name => [name, []]))
  let now = 0
  for (const [kind, name, id, owner, note, ...rest] of rows) {
    const [one = 0, two = 0, three = 0, ttl = 0, limit = 0, units = 0, grace = 0, passed = 0] = rest.map(Number)
    const claim = { id: String(id), owner: String(owner), note: String(note), ttl, limit, units, grace }
    if (Number(kind) === 1)
      leases.set(String(name), { holders: holdersOf(String(owner)), token: one, changed: two / 1_000, stamp: three })
    else if (Number(kind) === 2)
      places.get(String(name))?.push({ ...claim, seq: one, lapses: two / 1_000, gone: three > 0, isPassed: passed > 0 })
    else if (two > 0) throw readOnly()
    else now = one / 1_000
  }
  const none: Lease = { holders: [], token: leases.get('')?.token ?? 0, changed: 0, stamp: 0 }
  return names.map(name => {
    // Two that joined in the same microsecond have one number.
    const line = places.get(name)?.sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : 1))
    return new Entry(name, now, leases.get(name) ?? none, line ?? [])
  })
}

function placesOf(table: string, names: readonly string[], own: readonly string[] | undefined): string {
  const those = `${table}_line where name in (${names.map(hex).join(', ')})`
  const columns = PLACE.join(', ')
  if (!own) return `select 2, ${columns} from ${those}`
  const place = `row_number() over (partition by name order by gone or lapses <= ${TIME}, seq, id)`
  return `select 2, ${columns} from (select ${columns}, ${place} place from ${those}) w
    where place <= ${MOST_PLACES} or id in (${own.map(hex).join(', ')})`
}

const holdersOf = (json: string): Holder[] =>
  (JSON.parse(json) as Holder[]).map(holder => ({ ...holder, expires: holder.expires / 1_000 }))

const jsonOf = (holders: readonly Holder[]): string =>
  JSON.stringify(holders.map(holder => ({ ...holder, expires: micros(holder.expires) })))

/**
 * Writes the changes, and resolves to the names that were written completely. Names are in one order everywhere, so that
 * one of two simultaneous writes succeeds. With `alone`, a name that stays locked does not delay the others.
 */
export async function write(
  connection: MysqlConnection,
  table: string,
  names: readonly Entry[],
  alone: boolean,
  until: number = performance.now() + LONGEST_WRITE,
): Promise<Set<Entry>> {
  const isLarge = names.length > 1 && names.reduce((sum, { next }) => sum + next.holders.length, 0) > MOST_HOLDERS
  try {
    if (!isLarge) return await attempt(connection, table, names)
  } catch (error) {
    if (!isLocked(error)) throw error
  }
  const done = new Set<Entry>()
  const middle = Math.ceil(names.length / 2)
  for (const half of (isLarge || alone) && names.length > 1 ? [names.slice(0, middle), names.slice(middle)] : [])
    if (performance.now() < until) for (const name of await write(connection, table, half, alone, until)) done.add(name)
  return done
}

async function attempt(connection: MysqlConnection, table: string, all: readonly Entry[]): Promise<Set<Entry>> {
  const stamp = randomInt(1, 2 ** 48)
  const line = `${table}_line`
  const joins = all.flatMap(({ name, joins }) =>
    [...joins.values()].map(place => {
      const { id, owner, note, seq, lapses, gone, ttl, limit, units, grace, isPassed, until } = place
      // The time of a tombstone begins when it is written.
      const end = gone ? `${TIME} + ${micros(LONGEST_REQUEST)}` : micros(lapses)
      const terms = [ttl, limit, units, grace, Number(isPassed)]
      return [hex(name), hex(id), text(owner), text(note), seq, end, Number(gone), ...terms, micros(until)]
    }),
  )
  if (joins.length > 0) {
    const renewed = ['seq', 'ttl', 'slot_limit', 'units', 'grace', 'passed'].map(
      column => `${column} = values(${column})`,
    )
    // A claim that was withdrawn remains withdrawn.
    await connection.change(`insert into ${line} (${PLACE.join(', ')})
      select ${PLACE.map(column => `v.${column}`).join(', ')} from ${values([...PLACE, 'until'], joins)} where ${TIME} < v.until
      on duplicate key update ${renewed.join(', ')},
      lapses = if(${line}.gone > values(gone), ${line}.lapses, values(lapses)), gone = ${line}.gone or values(gone)`)
    const now = performance.now()
    for (const entry of all) entry.joinedAt = now
  }
  const capped = all.flatMap(({ name, capped }) =>
    capped.map(({ id, was, lapses, until }) => [hex(name), hex(id), micros(was), micros(lapses), micros(until)]),
  )
  if (capped.length > 0) {
    // A later request writes the rest.
    const caps = values(['name', 'id', 'was', 'lapses', 'until'], capped.slice(0, MOST_ENDED))
    await connection.change(`update ${caps} straight_join ${line} w on w.name = v.name and w.id = v.id and w.lapses = v.was
      set w.lapses = v.lapses where ${TIME} < v.until`)
  }

  const changed = all.filter(({ isChanged }) => isChanged)
  const valuesOf = (of: readonly Entry[]): string => {
    const rows = of.map(({ name, now, until, lease, next: { holders, token, changed } }) => {
      // For a name without holders, this is the end of the last lease.
      const expires = holders.reduce((last, holder) => Math.max(last, holder.expires), now)
      const times = [micros(Math.max(changed, 0)), micros(expires)]
      return [hex(name), text(jsonOf(holders)), token, ...times, lease.stamp, micros(until)]
    })
    return values([...COLUMNS, 'until'], rows)
  }
  const missing = changed.filter(({ lease }) => lease.stamp === 0)
  const present = changed.filter(({ lease }) => lease.stamp !== 0)
  const undone: Entry[] = []
  if (missing.length > 0) {
    const count = await connection.change(`insert ignore into ${table} (${COLUMNS.join(', ')})
      select ${COLUMNS.slice(0, -1).join(', ')}, ${stamp} from ${valuesOf(missing)} where ${TIME} < v.until`)
    undone.push(...(await unwritten(connection, table, missing, stamp, count)))
  }
  if (present.length > 0) {
    // The first table locks the rows that no other transaction has locked. Its `limit` keeps it a separate table.
    const count = await connection.change(`update (select name from ${table}
        where name in (${present.map(({ name }) => hex(name)).join(', ')}) limit ${present.length} for update skip locked) k
      straight_join ${valuesOf(present)} on v.name = k.name straight_join ${table} l on l.name = k.name
      set ${COLUMNS.slice(1, -1).map(column => `l.${column} = v.${column}`)}, l.stamp = ${stamp}
      where l.stamp = v.stamp and ${TIME} < v.until`)
    undone.push(...(await unwritten(connection, table, present, stamp, count)))
  }
  const done = new Set(all)
  for (const name of undone) done.delete(name)
  // This skips rows that were written again since, such as a tombstone or a position.
  const after = async (places: 'ended' | 'passed', then: string): Promise<void> => {
    const rows = all.flatMap(entry => {
      // While the lease stays as it is, the waiter behind a position may not have seen that it lapsed.
      const isSeen = (lapses: number): boolean => entry.isChanged || lapses < entry.now - LONGEST_REQUEST
      const those = done.has(entry) ? entry[places].filter(({ lapses }) => isSeen(lapses)) : []
      return those.map(({ id, lapses }) => [hex(entry.name), hex(id), micros(lapses)])
    })
    const found = `${values(['name', 'id', 'lapses'], rows.slice(0, MOST_ENDED))}
      straight_join ${line} w on w.name = v.name and w.id = v.id and w.lapses = v.lapses`
    // The leases are written, so an error here must not fail them. A later write repeats this.
    if (rows.length > 0) await connection.change(then.replace('…', found)).catch(() => {})
  }
  await after('ended', 'delete w from …')
  await after('passed', 'update … set w.passed = 1')
  return done
}

/**
 * The names that were not written, if the server wrote `count` rows. Sets `isUnclear` for names for which that is unknown.
 */
async function unwritten(
  connection: MysqlConnection,
  table: string,
  names: readonly Entry[],
  stamp: number,
  count: number,
): Promise<readonly Entry[]> {
  if (count === names.length) return []
  const keys = names.map(({ name }) => hex(name)).join(', ')
  const rows = await connection
    .rows(`select name, stamp from ${table} where name in (${keys})`)
    .catch(error => (isLocked(error) ? undefined : Promise.reject(error)))
  const stamps = new Map(rows?.map(([name, found]) => [String(name), Number(found)]))
  const found = ({ name }: Entry): number => stamps.get(name) ?? 0
  const asRead = rows ? names.filter(name => found(name) === name.lease.stamp) : []
  // Another client wrote these after they were read. If it wrote before us, our write failed.
  const others = names.filter(name => !asRead.includes(name) && found(name) !== stamp)
  const failed = names.length - count - asRead.length
  if (failed === 0) return asRead
  if (failed < others.length) for (const name of others) name.isUnclear = true
  return [...asRead, ...others]
}

/** Reads the next names after `last` that begin with `prefix` and have a holder or waiters. */
export async function list(
  connection: MysqlConnection,
  table: string,
  [prefix, last, most]: readonly [prefix: string, last: string, most: number],
): Promise<string[]> {
  const rows = await connection.rows(`select name from ${table} l where name >= ${hex(prefix)} and name > ${hex(last)}
      and left(name, ${Buffer.byteLength(prefix)}) = ${hex(prefix)}
      and (expires > ${TIME} or exists (
        select 1 from ${table}_line w where w.name = l.name and not gone and lapses > ${TIME}))
    order by name limit ${most}`)
  return rows.map(String)
}

/** Deletes idle rows among the next names, and resolves to the last of these names. */
export async function prune(connection: MysqlConnection, table: string, after: string, most: number): Promise<string> {
  const page = `select name from ${table} where name > ${hex(after)} order by name limit ${most}`
  const last = String((await connection.rows(page)).at(-1) ?? '')
  const range = `name > ${hex(after)} and name <= ${hex(last)}`
  // This keeps positions whose lapse the waiter behind has not seen yet.
  await connection.change(`delete from ${table}_line where ${range} and lapses < ${TIME} - ${micros(LONGEST_REQUEST)}`)
  const [[cutoff] = []] = await connection.rows(`select ${TIME} - ${DAY}`)
  // A token that is ahead of the clock stays with its name. In the row without a name it would use up the tokens of every
  // new name.
  const old = `greatest(expires, token) < ${Number(cutoff)}`
  const idle = `${range} and ${old} and name not in (select name from ${table}_line)`
  // The token is written first: a request that finds a row missing finds its token here. A row that has a higher token by
  // now is not changed.
  await connection.change(`insert into ${table} (${COLUMNS.join(', ')})
    select ${NONE}, ${text('[]')}, max(token), 0, 0, 1 from ${table} where ${idle} having max(token) is not null
    on duplicate key update token = greatest(${table}.token, values(token))`)
  const [[saved] = []] = await connection.rows(`select token from ${table} where name = ${NONE}`)
  await connection.change(`delete from ${table} where ${idle} and token <= ${Number(saved ?? -1)}`)
  return last
}
