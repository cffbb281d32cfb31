import { connect, type Socket } from 'node:net'
import { createPool } from 'mysql2'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { mysql } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt, transaction } from './support.ts'

let clock: ShiftedClock
let server: MariaDbServer
let other: Store

beforeAll(async () => {
  clock = startClock()
  server = await startMariaDb({ clock })
  other = storeAt(server.url())
  await hold(other, claimOf('first'))
})
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await server.stop()
  clock.stop()
})

/**
 * A store that pauses before its next write to a lease, as if its process were stopped between the read and the write; or
 * before each given statement, in order.
 */
function pausing(...at: RegExp[]): { store: Store; paused: () => Promise<unknown>; resume: () => void } {
  const steps = at.length > 0 ? at : [/skip locked|insert ignore/]
  let deliver: (() => void) | undefined
  const stream = (): Socket => {
    const socket = connect(server.port, server.host)
    const write = socket.write.bind(socket) as (data: Buffer) => boolean
    socket.write = (data: unknown) => {
      if (!steps[0]?.test(String(data))) return write(data as Buffer)
      steps.shift()
      deliver = () => void write(data as Buffer)
      return true
    }
    return socket
  }
  return {
    store: mysql(createPool({ uri: server.url(), stream })),
    paused: () => until('a statement is paused', () => deliver),
    resume() {
      const send = deliver
      deliver = undefined
      send?.()
    },
  }
}

test('a claim that is paused before its write holds up nobody, and takes nothing from those who came meanwhile', async () => {
  for (const name of ['new', 'old']) {
    if (name === 'old') await other.release(claimOf(name), signal) // a free row
    const { store, paused, resume } = pausing()
    const answer = acquire(store, claimOf(name))
    await paused()
    const [one, two] = [claimOf(name), claimOf(name, { owner: 'two' })]
    const token = await hold(other, one)
    expect(await other.release(one, signal)).toBe('released')
    expect(await hold(other, two)).toBeGreaterThan(token)
    resume()
    expect(await answer).toMatchObject({ held: false, holder: { owner: 'two' } })
    expect(await other.renew(two, signal)).toMatchObject({ held: true })
    await store[Symbol.asyncDispose]()
  }
})

test('a permit that is paused before its write gets no slot that others took meanwhile', async () => {
  const limit = 3
  await hold(other, claimOf('permits', { limit }))
  const { store, paused, resume } = pausing()
  const [answer, beside] = [acquire(store, claimOf('permits', { limit })), claimOf('permits', { limit })]
  await paused()
  expect(await acquire(other, beside)).toMatchObject({ slots: [1] })
  resume()
  expect(await answer).toMatchObject({ slots: [2] })
  expect(await other.renew(beside, signal)).toMatchObject({ slots: [1] })
  await store[Symbol.asyncDispose]()
})

test('a renewal that is paused before its write undoes none of another holder', async () => {
  const [one, two] = [claimOf('both', { limit: 2, ttl: 5_000 }), claimOf('both', { limit: 2, ttl: 5_000 })]
  for (const claim of [one, two]) await hold(other, claim)
  const { store, paused, resume } = pausing()
  const answer = store.renew(one, signal)
  await paused()
  expect(await other.release(two, signal)).toBe('released')
  resume()
  expect(await answer).toMatchObject({ slots: [0] })
  expect(await look(other, { name: 'both' })).toMatchObject([{ slots: [0] }])
  await store[Symbol.asyncDispose]()
})

test('a claim that is paused before its write is refused if it was withdrawn meanwhile', async () => {
  for (const name of ['withdrawn new', 'withdrawn old']) {
    if (name === 'withdrawn old') await other.release(claimOf(name), signal)
    const { store, paused, resume } = pausing()
    const claim = claimOf(name)
    const answer = acquire(store, claim)
    await paused()
    expect(await other.release(claim, signal)).toBe('gone')
    resume()
    expect(await answer).toMatchObject({ held: false })
    expect(await look(other, { name })).toEqual([])
    await store[Symbol.asyncDispose]()
  }
})

test('a request that is paused before its write for longer than its limit changes nothing', async () => {
  const [renewed, free] = [claimOf('renewed late', { ttl: 3_000 }), claimOf('free', { ttl: 3_000 })]
  await hold(other, renewed)
  await other.release(claimOf(free.name), signal)
  for (const [verb, claim] of [
    ['renew', renewed],
    ['acquire', free],
  ] as const) {
    const { store, paused, resume } = pausing()
    const outcome = failureOf(store[verb](claim, signal))
    await paused()
    const [before] = await look(other, { name: claim.name })
    await new Promise(resolve => setTimeout(resolve, 1_050)) // a third of the ttl
    resume()
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    const [after] = await look(other, { name: claim.name })
    expect(after?.remaining ?? 0).toBeLessThanOrEqual(before?.remaining ?? 0)
    await store[Symbol.asyncDispose]()
  }
})

test('a lease that ends while its renewal is paused before the write is not revived', async () => {
  const { store, paused, resume } = pausing()
  const claim = claimOf('revived', { ttl: 2_000 })
  await hold(other, claim)
  const renewal = store.renew({ ...claim, ttl: 10_000 }, signal)
  await paused()
  await until('it has ended', async () => (await look(other, { name: claim.name })).length === 0)
  resume()
  expect(await renewal).toBeUndefined()
  expect(await look(other, { name: claim.name })).toEqual([])
  await store[Symbol.asyncDispose]()
})

test('a break that is paused before its write takes the name from no later holder', async () => {
  const [first, next] = [claimOf('broken'), claimOf('broken')]
  await hold(other, first)
  const { store, paused, resume } = pausing()
  const broken = store.break('broken', { by: 'test' }, signal)
  await paused()
  await other.release(first, signal)
  const token = await hold(other, next)
  resume()
  expect(await broken).toBeUndefined()
  expect(await look(other, { name: 'broken' })).toMatchObject([{ token, state: 'held' }])
  await store[Symbol.asyncDispose]()
})

const WRITE = /skip locked/
const CHECK = /select name, stamp from/

test('a release that was written is confirmed although the name was taken before the store saw what it wrote', async () => {
  const [taken, locked] = [claimOf('taken at once'), claimOf('locked')]
  await hold(other, taken)
  await hold(other, locked)
  const { store, paused, resume } = pausing(CHECK)
  const foreign = await transaction(server, "select * from holdfast_lease where name = 'locked' for update")
  const releases = Promise.all([store.release(taken, signal), store.release(locked, signal)]) // in one statement
  await paused()
  await hold(other, claimOf(taken.name))
  await foreign[Symbol.asyncDispose]()
  resume()
  expect(await releases).toEqual(['released', 'released'])
  await store[Symbol.asyncDispose]()
})

test('a release has an unknown outcome if the row count does not tell whether others took the name before it or after', async () => {
  const [before, after, never] = [claimOf('taken before'), claimOf('taken after'), claimOf('as it was')]
  for (const claim of [before, after, never]) await hold(other, claim)
  await other.release(claimOf('free'), signal)
  const { store, paused, resume } = pausing(WRITE, CHECK)
  const releases = [before, after, never].map(claim => store.release(claim, signal))
  const outcomes = Promise.all(releases.map(release => release.catch(error => error.code)))
  const asked = acquire(store, claimOf('free'))
  await paused()
  await other.break(before.name, { by: 'test' }, signal)
  await hold(other, claimOf('free', { owner: 'faster' }))
  resume()
  await paused()
  await hold(other, claimOf(after.name))
  resume()
  expect(await outcomes).toEqual(['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN', 'released'])
  expect(await asked).toMatchObject({ held: false, holder: { owner: 'faster' } })
  await store[Symbol.asyncDispose]()
})

test('a break has an unknown outcome if the row count does not tell, and is right if it does', async () => {
  for (const isKnown of [true, false]) {
    const [one, two] = [claimOf('one'), claimOf('two')]
    const tokens = [await hold(other, one), await hold(other, two)]
    const { store, paused, resume } = pausing(WRITE, CHECK)
    const breaks = [one, two].map(({ name }) => store.break(name, { by: 'test' }, signal).catch(error => error.code))
    await paused()
    if (!isKnown) await other.release(one, signal)
    const foreign = isKnown && (await transaction(server, "select * from holdfast_lease where name = 'one' for update"))
    resume()
    await paused()
    const next = claimOf('two')
    await hold(other, next)
    if (foreign) await foreign[Symbol.asyncDispose]()
    resume()
    const [first, second] = await Promise.all(breaks)
    if (isKnown) expect([first > (tokens[0] ?? 0n), second > (tokens[1] ?? 0n)]).toEqual([true, true])
    else expect([first, second]).toEqual(['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN'])
    await other.release(next, signal)
    await store[Symbol.asyncDispose]()
  }
})

test('a lease that is renewed in the middle of a read is not taken for one from before the clock was set back', async () => {
  const claim = claimOf('renewed', { ttl: 3_000 })
  await hold(other, claim)
  let isArmed = true
  const stream = (): Socket => {
    const socket = connect(server.port, server.host)
    const write = socket.write.bind(socket) as (data: Buffer) => boolean
    socket.write = (data: unknown) => {
      const text = (data as Buffer).subarray(5).toString('latin1')
      if (!isArmed || !text.includes('union all')) return write(data as Buffer)
      isArmed = false
      // The server is slow after the first of its three parts.
      const slow = text.replace(
        'union all',
        "union all select 2, '', '', '', '', sleep(1.5), 0, 0, 0, 0, 0, 0, 0 union all",
      )
      const packet = Buffer.from(`12345${slow}`, 'latin1')
      packet.writeUInt32LE(slow.length + 1)
      packet[4] = 3 // COM_QUERY
      return write(packet)
    }
    return socket
  }
  await using store = mysql(createPool({ uri: server.url(), stream }))
  const asked = acquire(store, claimOf('renewed', { ttl: 10_000 }))
  await until('it reads', () => !isArmed)
  await new Promise(resolve => setTimeout(resolve, 500))
  const sent = performance.now()
  await other.renew(claim, signal)
  expect(await asked).toMatchObject({ held: false })
  const [record] = await look(other, { name: 'renewed' })
  expect((record?.remaining ?? 0) + performance.now() - sent).toBeGreaterThan(claim.ttl)
})

test('a tombstone that is written while a grant is about to delete a position stays', async () => {
  const [holder, waiter] = [claimOf('line', { id: 'holder' }), claimOf('line', { id: 'waiter', queue: true })]
  await hold(other, holder)
  await acquire(other, waiter)
  await other.release(holder, signal)
  const { store, paused, resume } = pausing(/delete w from/)
  const answer = acquire(store, waiter)
  await paused()
  while ((await other.release(waiter, signal)) !== 'gone');
  resume()
  await answer
  expect(await acquire(other, waiter)).toMatchObject({ held: false })
  expect(await look(other, { name: 'line' })).toEqual([])
  await store[Symbol.asyncDispose]()
})

test.each([true, false])(
  'a waiter that leaves after the clock was set back is not brought back (by one that queues: %s)',
  async queue => {
    const name = `set back ${queue}`
    const [leaves, dead] = [claimOf(name, { queue: true }), claimOf(name, { queue: true })]
    await hold(other, claimOf(name))
    for (const waiter of [leaves, dead]) await acquire(other, waiter)
    clock.jumpWall(-60_000)
    const { store, paused, resume } = pausing(/(into|join) holdfast_lease_line/)
    const answer = acquire(store, claimOf(name, { queue }))
    await paused()
    expect(await other.release(leaves, signal)).toBe('released')
    resume()
    expect(await answer).toMatchObject({ held: false })
    const count = async (): Promise<number> => (await look(other, { name })).length
    expect(await count()).toBe(queue ? 3 : 2) // the holder, the dead waiter, and perhaps the one that asked
    await until('the dead one lapses', async () => (await count()) === 1)
    await store[Symbol.asyncDispose]()
  },
)

test('a waiter that is written late takes the position from nobody who asked since', async () => {
  const [holder, waiter] = [claimOf('late'), claimOf('late', { queue: true, ttl: 3_000 })]
  await hold(other, holder)
  const { store, paused, resume } = pausing(/insert into holdfast_lease_line/)
  const answer = acquire(store, waiter)
  await paused()
  await new Promise(resolve => setTimeout(resolve, 3_050)) // until its position would have lapsed
  expect(await acquire(other, waiter)).toMatchObject({ ahead: 0 })
  expect(await acquire(other, claimOf('late', { queue: true }))).toMatchObject({ ahead: 1 })
  resume()
  expect(await failureOf(answer)).toMatchObject({ code: 'OUTCOME_UNKNOWN' }) // it has no position by this request
  expect(await acquire(other, waiter)).toMatchObject({ ahead: 0 })
  await store[Symbol.asyncDispose]()
})

test('a tombstone that is written late lasts from then on', async () => {
  const { store, paused, resume } = pausing(/insert into holdfast_lease_line/)
  const release = store.release(claimOf('tombstone'), signal)
  await paused()
  await new Promise(resolve => setTimeout(resolve, 1_000))
  const [before] = await server.query<{ time: number }>('select unix_timestamp(sysdate(6)) as time')
  resume()
  expect(await release).toBe('gone')
  const [row] = await server.query<{ lapses: number }>(
    "select lapses / 1000000 as lapses from holdfast_lease_line where name = 'tombstone' order by 1 desc",
  )
  expect(Number(row?.lapses) - Number(before?.time)).toBeGreaterThanOrEqual(5)
  await store[Symbol.asyncDispose]()
})
