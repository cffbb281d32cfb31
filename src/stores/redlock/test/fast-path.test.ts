import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { outcome, serverTime, withoutFastPath } from '../../redis/test/outcome.ts'
import { fastPath } from '../fast-path.ts'
import { script } from '../script.ts'

const KEY = 'holdfast:redlock{:a}'
const NOTE = 'holdfast:redlock:since'
const [OWN, OTHER] = ['a'.repeat(32), 'b'.repeat(32)]
const RUN_ID = 'c'.repeat(40)
const TTL = 10_000
const MAX_TTL = 60_000
const DAY = 86_400_000
const LAST = '9007199254740991'
const YEAR_2100 = 4_102_444_800_000_000
const ATTEMPT = 1_700_000_000_000_000

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})
beforeEach(() => client.flushall())

type Prepare = () => Promise<unknown>

const held = (id: string, ends: number, line = 0, token = '7'): Prepare => {
  return async () => {
    await client.set(
      KEY,
      `1 ${(await serverTime(client)) + ends} held ${line} ${token} ${TTL} ${id} ${ATTEMPT} ["o","n"]`,
    )
    if (line === 1) await queue()
  }
}
const free = (token: string, line = 0): Prepare => {
  return async () => {
    await client.set(
      KEY,
      `1 ${await serverTime(client)} free ${line} ${token} ${TTL} ${OTHER} 5 ["o","a note that is longer than the next"]`,
    )
    if (line === 1) await queue()
  }
}
async function queue(): Promise<void> {
  await client.zadd(`${KEY}:line`, 1, OTHER)
  await client.zadd(`${KEY}:lapse`, (await serverTime(client)) + TTL, OTHER)
  await client.hset(`${KEY}:waiter`, OTHER, `- ${await serverTime(client)} ["o","n"]`)
}

/** Every state of a name and of its claim. */
const states: Record<string, Prepare> = {
  missing: async () => {},
  'held by the claim': held(OWN, TTL),
  'held by the claim, with the token that it knows': held(OWN, TTL, 0, String(ATTEMPT)),
  'held by the claim, with a higher token than it knows': held(OWN, TTL, 0, String(YEAR_2100)),
  'held by the claim, for longer than its ttl': held(OWN, TTL + 60_000),
  'held by the claim, and ended': held(OWN, -1),
  'held by the claim, with waiters': held(OWN, TTL, 1),
  'held by another': held(OTHER, TTL),
  'held by another, and ended': held(OTHER, -1),
  'held by another whose id has this one in its note': async () =>
    client.set(KEY, `1 ${(await serverTime(client)) + TTL} held 0 7 ${TTL} ${OTHER} 5 ["${OWN} ","n"]`),
  'free, with a lower token': free('9'),
  'free, with the token of the attempt': free(String(ATTEMPT)),
  'free, with a higher token': free(String(YEAR_2100)),
  'free, with the last token': free(LAST),
  'free, with waiters': free('9', 1),
  withdrawn: () => client.set(`${KEY}:gone:${OWN}`, 'all', 'PX', 5_000),
  'conceded to an earlier attempt': () => client.set(`${KEY}:gone:${OWN}`, '5', 'PX', 5_000),
  'of another type': () => client.hset(KEY, 'field', 'value'),
  'of another format': () => client.set(KEY, '2 something'),
  'of another program': () => client.set(KEY, 'something'),
}

const noteOf = (runId: string, since: number): Prepare => {
  return async () => client.set(NOTE, `${runId} ${(await serverTime(client)) + since}`)
}

/** Each with the `maxTtl` of the store. */
const notes: Record<string, [maxTtl: number, prepare: Prepare]> = {
  'a trusted node': [0, async () => {}],
  'a node that remembers': [MAX_TTL, noteOf(RUN_ID, -DAY)],
  'a node in quarantine': [MAX_TTL, noteOf(RUN_ID, -1_000)],
  'a node that restarted': [MAX_TTL, noteOf('d'.repeat(40), -DAY)],
  'a node whose clock was set back': [MAX_TTL, noteOf(RUN_ID, DAY)],
  'a node without a note': [MAX_TTL, async () => {}],
  'a note of another format': [MAX_TTL, () => client.set(NOTE, 'something')],
  'a note of another type': [MAX_TTL, () => client.hset(NOTE, 'field', 'value')],
}

type Make = () => [request: string, ids: string]

const vote = (deadline: string, attempt: number): Make => {
  return () => [`vote 32 ${deadline} ${TTL} ${TTL + DAY} 1 ${attempt} ["o","n"]`, OWN]
}
const release = (token: number | string): Make => {
  return () => ['release 48 0 5000 0 0 ', OWN + String(token).padStart(16, '0')]
}

const requests: Record<string, Make> = {
  vote: vote('9999999999999', ATTEMPT),
  'a late vote': vote('1', ATTEMPT),
  'a vote without a deadline': vote('0', ATTEMPT),
  'a vote a century ahead': vote('9999999999999', YEAR_2100),
  'a vote some seconds ahead': () => vote('9999999999999', (Date.now() + 5_000) * 1_000)(),
  release: release(ATTEMPT),
  'release of a low token': release(7),
  'release of the last token with one digit': release(9),
  'release of a token that has a digit more than before': release(99),
  'release of the last token': release(LAST),
  'release of an unknown token': release(0),
}

async function outcomeOf(source: string, maxTtl: number, make: Make) {
  const [request, ids] = make()
  const suffixes = ['', ':line', ':lapse', ':waiter', `:gone:${ids}`]
  const startedAt = String((await serverTime(client)) - 2 * DAY)
  const args = ['-', '0', RUN_ID, startedAt, String(maxTtl), request, ids]
  return outcome(client, source, [...suffixes.map(suffix => KEY + suffix), NOTE], args)
}

describe('the fast path answers and keeps what the functions do', () => {
  const slow = withoutFastPath(script.source, fastPath)

  for (const [note, [maxTtl, prepareNote]] of Object.entries(notes))
    test.each(Object.entries(states))(`${note}, and the name is %s`, async (_, prepare) => {
      for (const request of Object.values(requests)) {
        const both: unknown[] = []
        for (const source of [script.source, slow]) {
          await client.flushall()
          await prepare()
          await prepareNote()
          both.push(await outcomeOf(source, maxTtl, request))
        }
        expect(both[0]).toEqual(both[1])
      }
    })

  const marked = script.source.replaceAll("return now .. ' 0\\n", "return now .. ' 0\\nfast ")

  test.each<[state: string, request: string, how: string]>([
    ['missing', 'vote', 'fast'],
    ['free, with a lower token', 'vote', 'fast'],
    ['held by the claim, with the token that it knows', 'release', 'fast'],
    ['held by another', 'vote', 'slow'],
    ['held by the claim, with waiters', 'release', 'slow'],
  ])('a name that is %s, and a %s: %s', async (state, request, how) => {
    for (const note of ['a trusted node', 'a node that remembers']) {
      const [maxTtl = 0, prepareNote] = notes[note] ?? []
      await client.flushall()
      await states[state]?.()
      await prepareNote?.()
      const { reply } = await outcomeOf(marked, maxTtl, requests[request] ?? vote('0', 1))
      expect(String(reply).startsWith('fast ')).toBe(how === 'fast')
    }
  })

  test('a full server refuses an unknown name, and serves one that it knows', async () => {
    for (const [state, expected] of [
      ['missing', /^!OOM/],
      ['free, with a lower token', /^\+\d+$/],
    ] as const) {
      const both: unknown[] = []
      for (const source of [script.source, slow]) {
        await client.flushall()
        await states[state]?.()
        await client.pexpire(KEY, DAY)
        await client.config('SET', 'maxmemory', '1')
        both.push(await outcomeOf(source, 0, vote('9999999999999', ATTEMPT)))
        await client.config('SET', 'maxmemory', '0')
      }
      expect(both[0]).toEqual(both[1])
      expect(both[0]).toMatchObject({ reply: [expect.stringMatching(expected)] })
    }
  })
})
