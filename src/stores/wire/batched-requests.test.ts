import { expect, test } from 'vitest'
import { LeaseError } from '../../contract/errors.ts'
import { type BatchedRequest, BatchedRequests, StaleRequest } from './batched-requests.ts'
import type { Connection } from './connection.ts'
import { Connections } from './connections.ts'

const { signal } = new AbortController()

interface Named extends BatchedRequest {
  readonly name: string
}

const connection: Connection = { onEnd: () => {}, isOpen: () => true, close: () => {} }

/** Requests to a server with scripted answers: one entry for each round trip. */
function requestsOver(
  script: ('done' | 'stale' | 'locked' | Error)[],
  trips: string[][] = [],
  open = async (): Promise<Connection> => connection,
) {
  const connections = new Connections({
    open,
    failure: error => new LeaseError('OUTCOME_UNKNOWN', String(error)),
    judge: () => 'keep',
  })
  const requests = new BatchedRequests<Connection, Named, string>({
    store: 'redis',
    engine: 'Redis',
    connections,
    largest: 2,
    worthSending: 2,
    async send(_, all) {
      trips.push(all.map(({ name }) => name))
      const answer = script.shift() ?? 'done'
      if (answer instanceof Error) throw answer
      return answer
    },
    settle(request, reply) {
      if (reply === 'stale' || reply === 'locked') return reply
      request.resolve(reply)
      return undefined
    },
  })
  return (name: string, until = performance.now() + 60_000, of = signal): Promise<string> =>
    requests.put({ name, until, signal: of })
}

test('R13: a request that was given up while the connection opened is not sent', async () => {
  for (const others of [[], ['kept']]) {
    const trips: string[][] = []
    const opened = Promise.withResolvers<Connection>()
    const put = requestsOver([], trips, () => opened.promise)
    const caller = new AbortController()
    const given = put('given up', undefined, caller.signal)
    const all = Promise.all(others.map(name => put(name)))
    await new Promise(resolve => setImmediate(resolve))
    caller.abort(new Error('given up'))
    opened.resolve(connection)
    await expect(given).rejects.toBe(caller.signal.reason)
    await all
    await put('next')
    expect(trips).toEqual([...(others.length > 0 ? [others] : []), ['next']])
  }
})

test('requests of one turn share round trips, up to the largest', async () => {
  const trips: string[][] = []
  const put = requestsOver([], trips)
  await Promise.all(['a', 'b', 'c'].map(name => put(name)))
  expect(trips).toEqual([['a', 'b'], ['c']])
})

test('a request that was refused as stale although it has time left is retried', async () => {
  const trips: string[][] = []
  expect(await requestsOver(['stale', 'stale'], trips)('a')).toBe('done')
  expect(trips).toEqual([['a'], ['a'], ['a']])
})

test('a request that is stale by our clock too is rejected, with an unknown outcome', async () => {
  const refused = requestsOver(['stale'])('a', performance.now())
  await expect(refused).rejects.toBeInstanceOf(StaleRequest)
  await expect(refused).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('a request whose row was locked is retried', async () => {
  expect(await requestsOver(['locked'])('a')).toBe('done')
})

test('a round trip that fails rejects all its requests, and the next one leaves', async () => {
  const put = requestsOver([new Error('cut')])
  await expect(Promise.all([put('a'), put('b')])).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(await put('c')).toBe('done')
})
