import { expect, test } from 'vitest'
import type { Connection } from './connection.ts'
import { Opening } from './opening.ts'

interface Attempt {
  readonly resolve: (connection: Connection) => void
  readonly reject: (error: Error) => void
}

function connection(): Connection & { isClosed: boolean } {
  const made = {
    isClosed: false,
    close: () => {
      made.isClosed = true
    },
  }
  return made as unknown as Connection & { isClosed: boolean }
}

/** An opening whose attempts the test settles. Resolves with the first `count` of them. */
async function attempts(count: number): Promise<{ opening: Opening<Connection>; made: Attempt[] }> {
  const made: Attempt[] = []
  const { promise, resolve: reached } = Promise.withResolvers<void>()
  const open = (): Promise<Connection> =>
    new Promise((resolve, reject) => {
      made.push({ resolve, reject })
      if (made.length === count) reached()
    })
  const opening = new Opening(open, 1)
  await promise
  return { opening, made }
}

test('the refusal of a later attempt does not end an opening whose first attempt hangs', async () => {
  const { opening, made } = await attempts(3)
  made[1]?.reject(new Error('refused'))
  const opened = connection()
  made[2]?.resolve(opened)
  expect(await opening.connection).toBe(opened)
})

test('of two attempts that succeed, the connection of the later one is closed', async () => {
  const { opening, made } = await attempts(2)
  const [first, second] = [connection(), connection()]
  made[0]?.resolve(first)
  await opening.connection
  made[1]?.resolve(second)
  await new Promise(resolve => setImmediate(resolve))
  expect([first.isClosed, second.isClosed]).toEqual([false, true])
})
