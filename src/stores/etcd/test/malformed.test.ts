import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { LeaseError } from '../../../contract/errors.ts'
import type { Busy, Claim, Grant } from '../../../contract/store.ts'
import { name, relay, store } from './relayed.ts'
import { claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

const header = { revision: '5', raft_term: '2' }

describe('S12: a malformed answer', () => {
  test.each([
    'null',
    '5',
    '{}',
    JSON.stringify({ header }),
    JSON.stringify({ header: { revision: 5, raft_term: 2 }, succeeded: true, responses: [{}] }),
    JSON.stringify({ header, succeeded: 'yes', responses: [{}] }),
    JSON.stringify({ header, responses: [{ response_range: { kvs: [{ key: 'a' }] } }] }),
  ])('leaves open whether the write before %s was carried out, and asking again finds out', async body => {
    const claim = claimOf(name())
    relay.onAnswer = (request, answer) => (request.includes('request_put') ? body : answer)
    expect(await failureOf(store.acquire(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    relay.onAnswer = (_, answer) => answer
    const token = await hold(store, claim)
    expect(await hold(store, claim)).toBe(token)
  })

  test('to a renewal does not mean that the lease is gone', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    for (const responses of [undefined, [], [{}], [{ response_range: { kvs: [5] } }]]) {
      relay.answer(/kv\/txn/, 200, JSON.stringify({ header, succeeded: true, responses }))
      expect(await failureOf(store.renew(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    }
    expect(await store.renew(claim, signal)).toMatchObject({ held: true })
  })

  test.each([
    [502, 'Bad Gateway'],
    [503, '{"code":14,"message":"transport is closing"}'],
    [500, '{"code":2,"message":"etcdserver: server stopped"}'],
  ])('nor does what a failing server or proxy answers, %i %s', async (status, body) => {
    relay.answer(/request_put/, status, body)
    expect(await failureOf(store.acquire(claimOf(name()), signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test('nor does the refusal of the next server', async () => {
    await using both = storeOf([relay, relay])
    relay.answer(/request_put/, 200, 'Bad Gateway')
    relay.answer(/request_put/, 503, '{"code":14,"message":"etcdserver: no leader"}')
    expect(await failureOf(both.acquire(claimOf(name()), signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test('to a login fails it, and the next server is tried', async () => {
    await using secured = storeOf([relay], { user: 'app', password: 'secret' })
    for (const body of ['null', '{}', '{"token":5}']) {
      relay.answer(/authenticate/, 200, body)
      expect(await failureOf(hold(secured, claimOf(name())))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    }
    await hold(secured, claimOf(name()))
  })
})

test('with any malformed answer, each call grants with a token or rejects with a LeaseError', async () => {
  const place = fc.tuple(fc.nat(12), fc.nat(400))
  const piece = fc.constantFrom('null', '5', '-1', '""', '"x"', '[]', '{}', '[{}]', 'true', '')
  await fc.assert(
    fc.asyncProperty(place, piece, fc.constantFrom('value', 'cut', 'key'), async ([nth, at], text, how) => {
      let left = nth
      relay.onAnswer = (_, answer) => (left-- === 0 ? spoiled(answer, at, text, how) : answer)
      const [first, second] = [claimOf(name()), claimOf(`name ${nth}`, { queue: true })]
      for (const claim of [first, second]) {
        const grants = [store.acquire(claim, signal), store.renew(claim, signal)].map(tokenOf)
        for (const token of await Promise.all(grants)) expect(token).toBeGreaterThan(0n)
        await Promise.all([look(store, { name: claim.name }), store.annotate(claim, signal)].map(refused))
        await Promise.all([store.break(claim.name, { by: '' }, signal), store.release(claim, signal)].map(refused))
      }
    }),
    { numRuns: 35, seed: 20_261_122 },
  )
})

/** The value, or the key, that is the next after `at`; or all from there. */
function spoiled(answer: string, at: number, text: string, how: 'value' | 'key' | 'cut'): string {
  const from = at % Math.max(answer.length, 1)
  if (how === 'cut') return answer.slice(0, from) + text
  const [before, after] = [answer.slice(0, from), answer.slice(from)]
  return before + (how === 'key' ? after.replace(/"\w+":/, '"other":') : after.replace(/:("[^"]*"|true)/, `:${text}`))
}

async function refused(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(error => {
    if (!LeaseError.is(error)) throw error
  })
}

async function tokenOf(promise: Promise<Grant | Busy | undefined>): Promise<bigint> {
  const answer = (await refused(promise)) as Grant | Busy | undefined
  return answer?.held ? answer.token : 1n
}

describe('M9: an answer without an end', () => {
  const servers: { close(): void; closeAllConnections(): void }[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  /** A server that answers without an end; how much it said, and when it was hung up on. */
  async function endless(
    status: number,
    piece: string,
  ): Promise<{ port: number; said: number; ended: Promise<unknown> }> {
    const { promise: ended, resolve } = Promise.withResolvers<unknown>()
    const answered = (response: ServerResponse): void => {
      response.on('close', resolve)
      response.writeHead(status)
      const push = (): void => {
        while (!response.destroyed && response.write(piece)) server.said += piece.length
        server.said += piece.length
      }
      response.on('drain', push)
      push()
    }
    const listening = createServer((_, response) => answered(response)).listen(0, '127.0.0.1')
    servers.push(listening)
    await once(listening, 'listening')
    const server = { port: (listening.address() as AddressInfo).port, said: 0, ended }
    return server
  }

  test.each([
    ['a refusal', 500, 'a'.repeat(65_536), /HTTP 500: a{100}/, 8e6],
    ['one line', 200, 'a'.repeat(65_536), /longer than 32 MB/, 100e6],
    [
      'many messages',
      200,
      `{"result":${JSON.stringify({ header, events: [], padding: 'a'.repeat(4_096) })}}\n`.repeat(16),
      /longer than 32 MB/,
      100e6,
    ],
  ] as const)('that is %s is given up, and read no further', async (_, status, piece, message, most) => {
    const server = await endless(status, piece)
    await using own = storeOf([server])
    const claim: Claim = claimOf('a', { ttl: 60_000 })
    expect(await failureOf(own.acquire(claim, signal))).toMatchObject({ message: expect.stringMatching(message) })
    await server.ended
    expect(server.said).toBeLessThan(most)
  })
})
