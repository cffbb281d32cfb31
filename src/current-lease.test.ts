import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { stage } from '../test/scripted-store.ts'
import { currentLease } from './current-lease.ts'

/** As code that is called deep inside, after it has waited. */
async function deepInside(name?: string): Promise<unknown> {
  await setImmediate()
  return currentLease(name)
}

test('code that the work calls has its lease, and code outside has none', async () => {
  const { locks } = stage()
  const [work, own] = await locks.using('a', async lease => [await deepInside(), lease])
  expect(work).toBe(own)
  const tried = await locks.tryUsing('a', async lease => (await deepInside()) === lease)
  expect(tried).toEqual({ ran: true, result: true })
  expect(currentLease()).toBeUndefined()
  const lease = await locks.acquire('a') // nothing surrounds what comes after it
  expect(currentLease()).toBeUndefined()
  await lease.release()
})

test('two works that run at once each have their own lease', async () => {
  const { locks } = stage()
  const seen = await Promise.all(
    ['a', 'b'].map(name =>
      locks.using(name, async lease => {
        const first = await deepInside()
        await setImmediate()
        return first === lease && (await deepInside()) === lease
      }),
    ),
  )
  expect(seen).toEqual([true, true])
})

test('nested works have the innermost lease, and by name also an outer one', async () => {
  const { locks } = stage()
  await locks.using('a', async outer => {
    await locks.using('b', async inner => {
      expect(await deepInside()).toBe(inner)
      expect(await deepInside('a')).toBe(outer)
      expect(await deepInside('c')).toBeUndefined()
    })
    expect(await deepInside()).toBe(outer)
  })
})

test('a lease that has ended is still answered, and says that it is over', async () => {
  const { locks } = stage()
  const late = await locks.using('a', async () => ({ later: setImmediate().then(() => currentLease()) }))
  const lease = await late.later
  expect(lease?.name).toBe('a')
  expect(() => lease?.assertHeld()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
})

test('a term of an election has its lease', async () => {
  const { locks } = stage()
  const stop = new AbortController()
  let seen: unknown
  await locks.election('a').run({ signal: stop.signal }, async lease => {
    seen = (await deepInside()) === lease
    stop.abort()
  })
  expect(seen).toBe(true)
})

test('permits, readers and writers are answered as a lease is', async () => {
  const { locks } = stage()
  const { reader, writer } = locks.readWrite('b')
  for (const each of [locks.semaphore('a', { limit: 2 }), reader, writer])
    expect(await each.using(async lease => (await deepInside()) === lease)).toBe(true)
})

test('of a set of leases one must be named, unless it has only one', async () => {
  const { locks } = stage()
  await locks.all(['a', 'b']).using(async ({ leases }) => {
    expect(await deepInside('b')).toBe(leases[1])
    expect(() => currentLease()).toThrow('this code runs under 2 leases: name one, as in currentLease("a")')
    await locks.using('c', async lease => {
      expect(await deepInside()).toBe(lease)
      expect(await deepInside('a')).toBe(leases[0])
    })
  })
  await locks.all(['a']).using(async ({ leases }) => expect(await deepInside()).toBe(leases[0]))
})
