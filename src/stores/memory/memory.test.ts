import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Busy, Claim, Grant, Store } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { memory } from './index.ts'

const { signal } = new AbortController()

function claim(name: string, id: string, changes: Partial<Claim> = {}): Claim {
  return { name, id, owner: id, ttl: 1_000, note: '', queue: true, ...changes }
}

function open(): { clock: VirtualClock; store: Store; put: (claim: Claim) => Promise<Grant | Busy> } {
  const clock = new VirtualClock()
  const store = memory({ clock })
  return { clock, store, put: each => store.acquire(each, signal) }
}

test('a watch that arrives after its end changes nothing, nor does the end of an older one', async () => {
  const { store, put } = open()
  await put(claim('a', '1'))
  await put(claim('a', '2'))
  const woken: string[] = []
  const watch = (name: string, signal: AbortSignal): Promise<void> =>
    store.watch?.(claim('a', '2'), () => woken.push(name), signal) ?? Promise.reject(new Error('no watch'))
  const older = new AbortController()
  await watch('older', older.signal)
  await watch('newer', signal)
  older.abort()
  await watch('late', AbortSignal.abort())
  await store.release({ name: 'a', id: '1' }, signal)
  expect(woken).toEqual(['newer'])
})

test('a name is held by one claim at a time, which may ask again and keeps its token', async () => {
  const { store, put, clock } = open()
  const first = await put(claim('a', '1'))
  expect(first).toEqual({ held: true, token: expect.any(BigInt), ttl: 1_000, slots: [0] })
  expect(await put(claim('a', '2', { queue: false }))).toMatchObject({
    held: false,
    retryAfter: 1_000,
    ahead: 0,
    holder: { name: 'a', state: 'held', owner: '1', remaining: 1_000 },
  })
  await clock.advance(900)
  expect(await put(claim('a', '1'))).toEqual(first)
  expect((await store.renew(claim('a', '1', { ttl: 5_000 }), signal))?.ttl).toBe(5_000)
  await clock.advance(4_999)
  expect(await put(claim('a', '2', { queue: false }))).toMatchObject({ held: false, retryAfter: 1 })
  await clock.advance(1)
  expect(await store.renew(claim('a', '1'), signal)).toBeUndefined()
  expect(await put(claim('a', '2'))).toMatchObject({ held: true })
})

test('a position lapses unless the waiter asks again, and release removes it', async () => {
  const { store, put, clock } = open()
  await put(claim('a', '1', { ttl: 60_000 }))
  await put(claim('a', 'quiet'))
  await put(claim('a', 'keen'))
  await clock.advance(999)
  expect(await put(claim('a', 'keen'))).toMatchObject({ ahead: 1 })
  await clock.advance(1)
  expect(await put(claim('a', 'keen'))).toMatchObject({ ahead: 0 })
  expect(await store.release({ name: 'a', id: 'keen' }, signal)).toBe('released')
  expect(await Array.fromAsync(store.inspect({ name: 'a' }, signal))).toHaveLength(1)
})

test('a claim that was withdrawn before it arrived is refused when it does', async () => {
  const { store, put } = open()
  expect(await store.release({ name: 'a', id: '1' }, signal)).toBe('gone')
  expect(await put(claim('a', '1'))).toMatchObject({ held: false })
  expect(await put(claim('a', '2'))).toMatchObject({ held: true })
  expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
})

test('twenty thousand idle names are forgotten, and tokens still rise', async () => {
  const { store, put, clock } = open()
  const token = async (name: string, id: string): Promise<bigint> => {
    const answer = await put(claim(name, id))
    if (!answer.held) throw new Error('busy')
    return answer.token
  }
  const first = await token('a', 'first')
  await store.release({ name: 'a', id: 'first' }, signal)
  for (let i = 0; i < 20_000; i += 1) {
    await token(`${i}`, `${i}`)
    if (i % 100 === 0) await clock.block(1_000)
  }
  await clock.block(60_000)
  expect(await token('a', 'second')).toBeGreaterThan(first)
  expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
})

test('tokens follow the wall clock in microseconds, and so rise across a restart', async () => {
  const { put, clock } = open()
  await clock.advance(5_000)
  const before = await put(claim('a', '1'))
  const restarted = memory({ clock })
  await clock.advance(1)
  const after = await restarted.acquire(claim('a', '2'), signal)
  expect(before).toMatchObject({ token: BigInt(clock.wall() - 1) * 1_000n })
  expect(after).toMatchObject({ token: BigInt(clock.wall()) * 1_000n })
})

test('tokens fall if the process restarts and its clock is then behind the last grant', async () => {
  const { put, clock } = open()
  await clock.advance(5_000)
  const before = await put(claim('a', '1'))
  const after = await open().put(claim('a', '2')) // a new clock is 5 s behind
  expect(before.held && after.held && after.token < before.token).toBe(true)
})

test('a list shows names in order, and only those that begin with the prefix', async () => {
  const { store, put } = open()
  for (const name of ['b/2', 'a', 'b/1', 'b']) await put(claim(name, name, { note: `note of ${name}` }))
  const names = async (prefix: string): Promise<string[]> =>
    (await Array.fromAsync(store.inspect({ prefix }, signal))).map(({ name }) => name)
  expect(await names('')).toEqual(['a', 'b', 'b/1', 'b/2'])
  expect(await names('b/')).toEqual(['b/1', 'b/2'])
  expect(await names('c')).toEqual([])
})

test('with any requests, at most one claim holds a name, and tokens rise from grant to grant', async () => {
  const id = fc.constantFrom('1', '2', '3', '4')
  const name = fc.constantFrom('a', 'b')
  const command = fc.oneof(
    fc.record({ acquire: id, name, queue: fc.boolean(), ttl: fc.constantFrom(100, 1_000, 5_000) }),
    fc.record({ renew: id, name }),
    fc.record({ release: id, name }),
    fc.record({ break: name }),
    fc.record({ wait: fc.integer({ min: 0, max: 1_500 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 80 }), async commands => {
      const { store, clock } = open()
      const holders = new Map<string, { id: string; token: bigint; until: number }>()
      const highest = new Map<string, bigint>()
      const generation = new Map<string, number>() // an id that was withdrawn is never used again
      const own = (each: string): string => `${each}.${generation.get(each) ?? 0}`
      for (const each of commands) {
        const now = clock.now()
        if ('wait' in each) await clock.block(each.wait)
        else if ('acquire' in each) {
          const { name, queue, ttl } = each
          const answer = await store.acquire(claim(name, own(each.acquire), { queue, ttl }), signal)
          const holder = holders.get(name)
          const live = holder && holder.until > now ? holder : undefined
          if (answer.held && live?.id === own(each.acquire)) expect(answer.token).toBe(live.token)
          else if (answer.held) {
            expect(live).toBeUndefined()
            expect(answer.token).toBeGreaterThan(highest.get(name) ?? 0n)
            highest.set(name, answer.token)
          } else expect(live?.id).not.toBe(own(each.acquire))
          if (answer.held) {
            const until = Math.max(now + ttl, live?.until ?? 0)
            holders.set(name, { id: own(each.acquire), token: answer.token, until })
          }
        } else if ('renew' in each) {
          const holder = holders.get(each.name)
          const mine = holder && holder.until > now && holder.id === own(each.renew) ? holder : undefined
          const answer = await store.renew(claim(each.name, own(each.renew)), signal)
          expect(answer?.token).toBe(mine?.token)
          if (mine) mine.until = now + 1_000
        } else if ('release' in each) {
          await store.release({ name: each.name, id: own(each.release) }, signal)
          if (holders.get(each.name)?.id === own(each.release)) holders.delete(each.name)
          generation.set(each.release, (generation.get(each.release) ?? 0) + 1)
        } else {
          const holder = holders.get(each.break)
          const token = await store.break(each.break, { by: 'operator' }, signal)
          expect(token !== undefined).toBe(holder !== undefined && holder.until > now)
          if (token !== undefined) {
            expect(token).toBeGreaterThan(highest.get(each.break) ?? 0n)
            highest.set(each.break, token)
          }
          holders.delete(each.break)
        }
      }
    }),
    { numRuns: 200 },
  )
})

test('tokens rise over a million names, and nothing is kept of them', async () => {
  const { store, put } = open()
  let last = 0n
  for (let index = 0; index < 1_000_000; index += 1) {
    const name = `name ${index}`
    const answer = await put(claim(name, String(index), { queue: false }))
    if (!answer.held || answer.token <= last) throw new Error(`${name} has no token above ${last}`)
    last = answer.token
    await store.release({ name, id: String(index) }, signal)
  }
  const again = await put(claim('name 0', 'again'))
  expect(again.held && again.token > last).toBe(true)
  expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
}, 30_000)
