import { expect, test } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'
import { look } from '../../test/support.ts'

test('many readers or one writer, and a plain lease of the name is a writer', async () => {
  const { locks, other, server } = stage()
  const { reader, writer } = locks.readWrite('catalogue')
  const readers = await Promise.all(Array.from({ length: 500 }, () => reader.acquire()))
  readers.push(await other.readWrite('catalogue').reader.acquire())
  expect(new Set(readers.map(({ slot }) => slot)).size).toBe(501)
  expect(await writer.tryAcquire()).toBeUndefined()
  expect(await other.tryAcquire('catalogue')).toBeUndefined()
  for (const each of readers) await each.release()
  const writing = await writer.acquire()
  expect('slots' in writing).toBe(false)
  expect(await reader.tryAcquire()).toBeUndefined()
  expect(await other.tryAcquire('catalogue')).toBeUndefined()
  expect(await other.readWrite('catalogue').writer.tryAcquire()).toBeUndefined()
  await writing.release()
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('readers that come after a waiting writer wait for it, and so it is not starved', async () => {
  const { locks, other, clock } = stage()
  const { reader, writer } = locks.readWrite('x')
  const first = await reader.acquire()
  const second = await other.readWrite('x').reader.acquire()
  const writing = follow(writer.acquire())
  await clock.advance(0)
  const late = follow(reader.acquire())
  await clock.advance(0)
  expect(await other.readWrite('x').reader.tryAcquire()).toBeUndefined()
  await first.release()
  await clock.advance(1_000)
  expect([writing.settled, late.settled]).toEqual([false, false])
  await second.release()
  await clock.advance(0)
  expect([writing.settled, late.settled]).toEqual([true, false])
  await writing.value?.release()
  await clock.advance(0)
  expect(late.value?.slots).toHaveLength(1)
})

test('readers of a name use up the permits of a semaphore of it', async () => {
  const { locks } = stage()
  const semaphore = locks.semaphore('x', { limit: 2 })
  const { reader } = locks.readWrite('x')
  const readers = [await reader.acquire(), await reader.acquire()]
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await readers[0]?.release()
  expect(await semaphore.tryAcquire()).toMatchObject({ slot: 0 })
  expect(await reader.tryAcquire()).toBeUndefined() // its slot would not be below the limit of the permit
})
