import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { acquireOne, releaseOne } from '../fast-path.ts'
import { namesOf } from '../names.ts'
import { schemaSql } from '../schema.ts'
import { literal } from '../sql.ts'
import { transaction } from './support.ts'

const [OWN, OTHER, CHANNEL] = ['own', 'other', 'holdfast_test']
const TTL = 60_000
const HOUR = 3_600_000
const names = namesOf({})

let clock: ShiftedClock
let server: PostgresServer
let client: Client
let notified: string[] = []

beforeAll(async () => {
  clock = startClock()
  server = await startPostgres({ clock })
  await server.query(schemaSql(names))
  client = new Client({ connectionString: server.url() })
  await client.connect()
  client.on('notification', ({ payload }) => void notified.push(payload ?? ''))
  await client.query(`listen ${CHANNEL}`)
})
afterAll(async () => {
  await client.end()
  await server.stop()
  clock.stop()
})

const lease = (id: string | null, token: number | string, ends: number): string =>
  `insert into holdfast.lease (name, id, owner, note, token, ttl, expires_at)
  values ('a', ${id ? literal(id) : 'null'}, 'o', 'n', ${token}, ${TTL}, clock_timestamp() + ${ends} * interval '1 ms');`

const place = (id: string, lapses: number, gone = false): string =>
  `insert into holdfast.lease_line (name, id, owner, note, channel, lapses_at, gone)
  values ('a', '${id}', 'o', 'n', '${CHANNEL}', clock_timestamp() + ${lapses} * interval '1 ms', ${gone});`

/** A name with a slot that is held under a limit of 2. */
const slot = (id: string, at: number, ends: number, ttl = TTL): string =>
  `insert into holdfast.lease (name, token, ttl, expires_at, shared) values ('a', 8, 0, clock_timestamp(), true) on conflict do nothing;
  insert into holdfast.lease_shared values ('a', '${id}', 'o', 'n', 2, '{${at}}', 8, ${ttl}, clock_timestamp() + ${ends} * interval '1 ms');`

const LAST = Number.MAX_SAFE_INTEGER

/** Every state of a name and of the claim. */
const states: Record<string, string> = {
  missing: '',
  'held by the claim': lease(OWN, 7, TTL),
  'held by the claim, and about to end': lease(OWN, 7, 5_000),
  'held by the claim, and ended': lease(OWN, 7, -5_000),
  'held by the claim, with the last token': lease(OWN, LAST, TTL),
  'held by the claim, with a waiter': lease(OWN, 7, TTL) + place(OTHER, TTL),
  'held by the claim, with a waiter that lapsed': lease(OWN, 7, TTL) + place(OTHER, -5_000),
  'held by the claim, with a position of its own': lease(OWN, 7, TTL) + place(OWN, TTL),
  'held by the claim, with a position of its own and a waiter':
    lease(OWN, 7, TTL) + place(OWN, TTL) + place(OTHER, TTL),
  'held by the claim, with a withdrawn claim': lease(OWN, 7, TTL) + place(OTHER, TTL, true),
  'held by another': lease(OTHER, 7, TTL),
  'held by another, and ended': lease(OTHER, 7, -5_000),
  'held by another, while the claim waits': lease(OTHER, 7, TTL) + place(OWN, TTL),
  free: lease(null, 7, 0),
  'free, with a token ahead of the clock': lease(null, LAST - 5, 0),
  'free, with the last token': lease(null, LAST, 0),
  // The grace period of the first waiter begins, or ended long ago.
  'free, with a waiter': lease(null, 7, 5_000) + place(OTHER, TTL),
  'free for long, with a waiter': lease(null, 7, -5_000) + place(OTHER, TTL),
  'free, with a waiter that lapsed': lease(null, 7, 5_000) + place(OTHER, -5_000),
  'free, while the claim waits': lease(null, 7, 5_000) + place(OWN, TTL),
  'free, while the claim waits behind another': lease(null, 7, 5_000) + place(OTHER, TTL) + place(OWN, TTL),
  'free for long, while the claim waits behind another': lease(null, 7, -5_000) + place(OTHER, TTL) + place(OWN, TTL),
  'free, and the claim is withdrawn': lease(null, 7, 0) + place(OWN, TTL, true),
  'shared by another': slot(OTHER, 0, TTL),
  'shared by two others': slot(OTHER, 0, TTL) + slot('third', 1, TTL),
  'shared by the claim': slot(OWN, 0, TTL),
  'shared by the claim, and ended': slot(OWN, 0, -5_000),
  'shared by the claim and another, with a waiter': slot(OWN, 0, TTL) + slot('third', 1, TTL) + place(OTHER, TTL),
  'shared by the claim and another, which ended, with a waiter':
    slot(OWN, 0, TTL) + slot('third', 1, -5_000) + place(OTHER, TTL),
  'shared by another, which released it': slot(OTHER, 0, -5_000, 0),
  'free, and the claim was withdrawn long ago': lease(null, 7, 0) + place(OWN, -5_000, true),
}

const order = { name: 'a', id: OWN, owner: 'its "owner"', note: "it's a \\ note", ttl: TTL }
const requests = {
  'an acquire': { ...order, queue: false, slot_limit: 1, units: 1, round_trip: 20, until: 1e15 },
  'an acquire of a slot': { ...order, queue: true, slot_limit: 2, units: 1, round_trip: 20, until: 1e15 },
  'an acquire that queues': { ...order, queue: true, slot_limit: 1, units: 1, round_trip: 20, until: 1e15 },
  'a late acquire': { ...order, queue: true, slot_limit: 1, units: 1, round_trip: 20, until: 1 },
  'a release': { name: 'a', id: OWN },
}

/** The same request to the function for one, and to the function for batches. */
function calls(request: object): readonly [one: string, many: string] {
  const verb = 'ttl' in request ? 'acquire' : 'release'
  const channel = verb === 'acquire' ? `, '${CHANNEL}'` : ''
  const values = Object.values(request).map(value => literal(String(value)))
  const json = literal(JSON.stringify([{ i: 0, ...request }]))
  return [
    `select ${names.call(`${verb}_one`)}(${values.join()}${channel}) as answer`,
    `select ${names.call(verb)}(${json}${channel}) as answer`,
  ]
}

/** The answer, all that is kept then, and who was notified. Times are in seconds from now, and tokens from the clock. */
async function outcome(statement: string): Promise<unknown> {
  notified = []
  const { rows } = await client.query(statement)
  const [time, answers] = JSON.parse(rows[0].answer) as [number, unknown[][]]
  const seconds = (ms: number): string => `${Math.round((ms - time) / 5_000) * 5} s`
  const relative = (value: unknown): unknown => {
    if (value instanceof Date) return value.getTime() === 0 ? 'never' : seconds(value.getTime())
    if (Array.isArray(value)) return value.map(relative)
    return Math.abs(Number(value) / 1_000 - time) < 60_000 ? 'by the clock' : value
  }
  for (const answer of answers) {
    if (answer[0] !== 'busy') continue
    answer[1] = seconds(time + Number(answer[1]))
    const holder = answer[4] as unknown[] | null
    if (holder) holder[3] = seconds(time + Number(holder[3]))
  }
  const kept: unknown[] = []
  for (const table of ['lease', 'lease_shared', 'lease_line']) {
    const found = await client.query(`select * from holdfast.${table} order by name, id`)
    for (const row of found.rows) kept.push(Object.entries({ ...row, seq: undefined }).map(relative))
  }
  return { answers: relative(answers), kept, notified }
}

describe('a function for one request answers and keeps what that for batches does', () => {
  for (const [what, request] of Object.entries(requests))
    test.each(Object.entries(states))(`${what}, and the name is %s`, async (_, state) => {
      for (const jump of [0, -HOUR]) {
        const both: unknown[] = []
        for (const call of calls(request)) {
          await client.query(`truncate holdfast.lease, holdfast.lease_shared, holdfast.lease_line; ${state}`)
          clock.jumpWall(jump)
          both.push(await outcome(call))
          clock.jumpWall(-jump)
        }
        expect(both[0]).toEqual(both[1])
      }
    })

  test.each(['for update', 'for no key update', 'for key share'])('the row is locked %s', async lock => {
    for (const [request, state] of [
      [requests['an acquire'], 'free'],
      [requests['a release'], 'held by the claim'],
    ] as const) {
      const both: unknown[] = []
      for (const call of calls(request)) {
        await client.query(`truncate holdfast.lease, holdfast.lease_shared, holdfast.lease_line; ${states[state]}`)
        const other = await transaction(server, `select from holdfast.lease ${lock}`)
        try {
          both.push(await outcome(call))
        } finally {
          await other.end()
        }
      }
      expect(both[0]).toEqual(both[1])
    }
  })
})

describe('what changes while a request is carried out', () => {
  const [acquire] = calls(requests['an acquire'])
  const waitsFor = (what: string): Promise<unknown> =>
    until(`it waits for ${what}`, async () => {
      const waiting = await server.query(`select from pg_stat_activity where wait_event = '${what}'`)
      return waiting.length > 0
    })

  /** Carries out a request whose function pauses at this text, while `change` is made. */
  async function paused(source: string, call: string, at: string, change: () => Promise<unknown>): Promise<unknown> {
    const gate = await transaction(server, 'select pg_advisory_xact_lock(1)')
    const pause = "perform set_config('lock_timeout', '0', true); perform pg_advisory_xact_lock(1);"
    await client.query(
      source.replace(at, `${at.startsWith('if found') ? `if found then ${pause} end if;` : pause} ${at}`),
    )
    const answer = outcome(call)
    answer.catch(() => {}) // it is awaited below
    try {
      await waitsFor('advisory')
      await change()
    } finally {
      await gate.end()
      await client.query(source)
    }
    return answer
  }

  const prepare = (state = ''): Promise<unknown> =>
    client.query(`truncate holdfast.lease, holdfast.lease_shared, holdfast.lease_line; ${state}`)
  const holders = (): Promise<unknown[]> => server.query(`select from holdfast.lease where id = '${OWN}'`)

  const isGone = ['gone']
  const isBusy = expect.arrayContaining(['busy'])

  test('a withdrawal or a new waiter that comes before the grant prevents it', async () => {
    // Its grace period begins after the pause.
    const free = lease(null, 7, 60_000)
    for (const [at, state, change, answer] of [
      ['-- This also sees', free, place(OWN, TTL, true), isGone],
      ['-- This also sees', free, place(OTHER, TTL), isBusy],
      ['insert into', '', free + place(OWN, TTL, true), isGone],
      ['insert into', '', place(OWN, TTL, true), isGone],
      ['insert into', '', free + place(OTHER, TTL), isBusy],
      ['insert into', '', lease(OTHER, 7, TTL), isBusy],
    ] as const) {
      await prepare(state)
      const result = await paused(acquireOne(names), acquire, at, () => server.query(change))
      expect(result).toMatchObject({ answers: [answer] })
      expect(await holders()).toEqual([])
    }
  })

  test('what another transaction does with a new name is waited for', async () => {
    const patient = acquireOne(names).replace('lock_timeout = 1000', 'lock_timeout = 60000')
    await client.query(patient)
    for (const [change, end, answer] of [
      [lease(OTHER, 7, TTL), 'commit', isBusy],
      [lease(null, 0, 0) + place(OWN, TTL, true), 'commit', isGone],
      [lease(OTHER, 7, TTL), 'rollback', expect.arrayContaining(['held'])],
    ] as const) {
      await prepare()
      const other = await transaction(server, change)
      const result = outcome(acquire)
      await waitsFor('transactionid')
      await other.end(end)
      expect(await result).toMatchObject({ answers: [answer] })
    }
    await client.query(acquireOne(names))
  })

  test('what another transaction does with a row is not waited for', async () => {
    await prepare(states['held by another'])
    const other = await transaction(server, "update holdfast.lease set note = 'other'")
    const answer = outcome(acquire)
    await answer.finally(() => other.end())
    expect(await answer).toMatchObject({ answers: [isBusy] })
  })

  test.each(['free', 'missing'])('a grant that became late is taken back, of a name that was %s', async state => {
    await prepare(states[state])
    const limit = Date.now() + 3_000
    const [call] = calls({ ...requests['an acquire'], until: limit })
    const isLate = (): Promise<unknown> => until('it is late', () => Date.now() > limit)
    const result = await paused(acquireOne(names), call, 'if found and _until >= extract', isLate)
    expect(result).toMatchObject({ answers: [['late']] })
    expect(await server.query('select from holdfast.lease where id is null')).toHaveLength(1)
  })

  test('a waiter that joins before a lease is released is notified', async () => {
    await prepare(states['held by the claim'])
    const [call] = calls(requests['a release'])
    const join = (): Promise<unknown> => server.query(place(OTHER, TTL))
    const result = await paused(releaseOne(names), call, 'if exists (select from "holdfast"."lease_line"', join)
    expect(result).toMatchObject({ answers: [['released']], notified: [OTHER] })
  })
})

test.each([
  ['acquire', 'an acquire', 'free'],
  ['acquire', 'an acquire', 'missing'],
  ['release', 'a release', 'held by the claim'],
  ['release', 'a release', 'held by the claim, with a waiter'],
] as const)('%s: %s of a name that is %s needs no function for batches', async (verb, request, state) => {
  await client.query(`truncate holdfast.lease, holdfast.lease_shared, holdfast.lease_line; ${states[state]}`)
  await client.query('begin')
  try {
    await client.query(`alter function ${names.call(verb)} rename to gone`)
    const { rows } = await client.query(calls(requests[request])[0])
    expect(rows[0].answer).toMatch(/held|released/)
  } finally {
    await client.query('rollback')
  }
})
