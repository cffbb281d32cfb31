import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failureOf } from '../../../test/support.ts'
import { tokensOf } from '../../cli/tokens.ts'
import { testLocks } from '../../testing/index.ts'
import { fencedWrite } from '../files/index.ts'
import { fenceHeaders } from '../http/index.ts'
import type { Holder } from '../mark.ts'
import { type Bank, banks } from './banks.ts'

interface Shown extends Holder {
  readonly slots?: readonly number[]
}

/** A permit as a process shows it that does not know that it has ended. */
function paused({ name, token, slots }: Shown): Shown {
  return slots ? { name, token, slots } : { name, token }
}

describe.each(Object.keys(banks))('%s', name => {
  let bank: Bank
  beforeAll(async () => {
    bank = await (banks[name] as () => Promise<Bank>)()
  })
  afterAll(() => bank.close())

  test('each slot of a permit is a resource, so permits of different slots do not refuse each other', async () => {
    const locks = testLocks()
    const semaphore = locks.semaphore('api', { limit: 2 })
    const [older, newer] = [await semaphore.acquire(), await semaphore.acquire()]
    await bank.add(newer)
    await bank.add(older)
    const late = paused(newer)
    await newer.release()
    await bank.add(await semaphore.acquire())
    expect(await failureOf(bank.add(late))).toMatchObject({ code: 'STALE_TOKEN', token: late.token })
    await bank.add(older)
    const resources = (await bank.marks.list('api')).map(({ resource }) => resource)
    expect(resources).toEqual(['api', 'api\u241f1'])
    await locks.close()
  })

  test('a writer that was paused is refused once a reader has begun, and a reader once a writer has', async () => {
    const locks = testLocks()
    const { reader, writer } = locks.readWrite('pages')
    const writing = await writer.acquire()
    await bank.add(writing)
    const lateWriter = paused(writing)
    await writing.release()
    const reading = await reader.acquire()
    await bank.add(lateWriter) // so a reader that shows no mark reads before and after this write
    await bank.touch(reading)
    expect(await failureOf(bank.add(lateWriter))).toMatchObject({ code: 'STALE_TOKEN' })
    const lateReader = paused(reading)
    await reading.release()
    await bank.add(await writer.acquire())
    expect(await failureOf(bank.touch(lateReader))).toMatchObject({ code: 'STALE_TOKEN' })
    await locks.close()
  })

  test('a command shows a permit by HOLDFAST_TOKENS, and is refused as the permit is', async () => {
    const locks = testLocks()
    const { reader, writer } = locks.readWrite('books')
    const writing = await writer.acquire()
    const tokens = Object.entries(tokensOf(writing))
    const command = { leases: tokens.map(([name, token]) => ({ name, token: BigInt(token) })) }
    await bank.add(command)
    await bank.add(writing)
    await writing.release()
    await bank.touch(await reader.acquire())
    expect(await failureOf(bank.add(command))).toMatchObject({ code: 'STALE_TOKEN' })
    const resources = (await bank.marks.list('books')).map(({ resource }) => resource)
    expect(resources).toEqual(['books'])
    await locks.close()
  })

  test('a permit that is over in this process is refused', async () => {
    const locks = testLocks()
    const permit = await locks.semaphore('over', { limit: 2 }).acquire({ permits: 2 })
    await locks.lose('over')
    expect(await failureOf(bank.add(permit))).toMatchObject({ code: 'LEASE_LOST', lease: 'over' })
    await locks.close()
  })
})

test('a header names the slot, and fences with one mark refuse permits', async () => {
  const locks = testLocks()
  const semaphore = locks.semaphore('x', { limit: 3 })
  const [zero, one] = [await semaphore.acquire(), await semaphore.acquire()]
  expect(fenceHeaders(zero)).toMatchObject({ 'Fencing-Resource': '"x"' })
  expect(fenceHeaders(one, { resource: 'y' })['Fencing-Resource']).toContain('y%e2%90%9f1')
  await one.release()
  const two = await semaphore.acquire({ permits: 2 })
  expect(() => fenceHeaders(two)).toThrow(/takes one token, and the permit of "x" has 2 slots/)
  expect(await failureOf(fencedWrite(join(tmpdir(), 'holdfast-permit.txt'), 'text', zero))).toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
  await locks.close()
})
