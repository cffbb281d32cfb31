import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { fastPath } from '../fast-path.ts'
import { script } from '../verbs.ts'
import { outcome, serverTime, withoutFastPath } from './outcome.ts'

const KEY = 'holdfast:{:a}'
const COUNTER = 'holdfast:token'
const [OWN, OTHER] = ['a'.repeat(32), 'b'.repeat(32)]
const TTL = 10_000
const YEAR_2100 = 4_102_444_800_000_000

let clock: ShiftedClock
let server: RedisServer
let client: Redis

beforeAll(async () => {
  clock = startClock()
  server = await startRedis({ clock })
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
  clock.stop()
})
beforeEach(() => client.flushall())

type Prepare = () => Promise<unknown>

const held = (id: string, ends: number, line = 0, token = '7'): Prepare => {
  return async () =>
    client.set(KEY, `1 ${(await serverTime(client)) + ends} held ${line} ${token} ${TTL} ${id} ["o","n"]`)
}

/** Every state of a name, of its claim and of the counter. */
const states: Record<string, Prepare> = {
  missing: async () => {},
  'held by the claim': held(OWN, TTL),
  'held by the claim, and about to end': held(OWN, 2_000),
  'held by the claim, for longer than its ttl': held(OWN, TTL + 60_000),
  'held by the claim, and ended': held(OWN, -1),
  'held by the claim, with waiters': held(OWN, TTL, 1),
  'held by the claim, with a token above the counter': held(OWN, TTL, 0, String(YEAR_2100 + 5)),
  'held by the claim, which shares it': async () =>
    client.set(KEY, `1 ${(await serverTime(client)) + TTL} held 0 7 ${TTL}/4/2 ${OWN} ["o","n"]`),
  'held by another': held(OTHER, TTL),
  'held by another, and ended': held(OTHER, -1),
  'held by another whose id has this one in its note': async () =>
    client.set(KEY, `1 ${(await serverTime(client)) + TTL} held 0 7 ${TTL} ${OTHER} ["${OWN} ","n"]`),
  'free, with a token': async () => client.set(KEY, `1 ${await serverTime(client)} free 0 9 ${TTL} ${OTHER} ["o","n"]`),
  'free, with the last token': async () =>
    client.set(KEY, `1 ${await serverTime(client)} free 0 9007199254740991 ${TTL} ${OTHER} ["o","n"]`),
  'free, with waiters': async () => {
    await client.set(KEY, `1 ${await serverTime(client)} free 1 9 ${TTL} ${OTHER} ["o","n"]`)
    await client.zadd(`${KEY}:line`, 1, OTHER)
    await client.zadd(`${KEY}:lapse`, (await serverTime(client)) + TTL, OTHER)
    await client.hset(`${KEY}:claim`, OTHER, 'w - 1 0 1 1 ["o","n"]')
  },
  withdrawn: () => client.set(`${KEY}:gone:${OWN}`, '1', 'PX', 5_000),
  'of another type': () => client.hset(KEY, 'field', 'value'),
  'of another format': () => client.set(KEY, '2 something'),
  'of another program': () => client.set(KEY, 'something'),
}

const counters: Record<string, Prepare> = {
  'no counter': () => client.del(COUNTER),
  'a counter behind the clock': () => client.set(COUNTER, '100'),
  'a counter ahead of the clock': () => client.set(COUNTER, String(YEAR_2100)),
  'a used up counter': () => client.set(COUNTER, '9007199254740991'),
  'a counter that is none': () => client.set(COUNTER, 'something'),
  'a counter of another type': () => client.hset(COUNTER, 'field', 'value'),
}

const requests: Record<string, string> = {
  acquire: `acquire 32 9999999999999 ${TTL} ${TTL + 3_600_000} 1 ["o","n"]`,
  'an acquire of a permit': `acquire 32 9999999999999 ${TTL} ${TTL + 3_600_000} 1 4 1 ["o","n"]`,
  'an acquire of two permits': `acquire 32 9999999999999 ${TTL} ${TTL + 3_600_000} 1 4 2 ["o","n"]`,
  'a late acquire': `acquire 32 1 ${TTL} ${TTL + 3_600_000} 1 ["o","n"]`,
  release: 'release 32 0 5000 0 0 ',
}

function outcomeOf(source: string, request = ''): Promise<unknown> {
  const suffixes = ['', ':line', ':lapse', ':claim', `:gone:${OWN}`]
  return outcome(client, source, [...suffixes.map(suffix => KEY + suffix), COUNTER], ['-', '0', '0', request, OWN])
}

describe('the fast path answers and keeps what the functions do', () => {
  const slow = withoutFastPath(script.source, fastPath)

  for (const [counter, prepareCounter] of Object.entries(counters))
    test.each(Object.entries(states))(`${counter}, and the name is %s`, async (_, prepare) => {
      for (const request of Object.values(requests)) {
        const both: unknown[] = []
        for (const source of [script.source, slow]) {
          await client.flushall()
          await prepare()
          await prepareCounter()
          both.push(await outcomeOf(source, request))
        }
        expect(both[0]).toEqual(both[1])
      }
    })

  test('it is taken where nothing is in the way', async () => {
    await client.set(COUNTER, '100')
    const marked = script.source.replaceAll("return now .. '\\n", "return now .. '\\nfast ")
    for (const request of ['acquire', 'release', 'an acquire of a permit', 'release']) {
      const { reply } = (await outcomeOf(marked, requests[request])) as { reply: string[] }
      expect(reply).toEqual([expect.stringMatching(/^fast /)])
    }
  })

  test('it leaves several equal requests to the functions', async () => {
    await client.set(COUNTER, '100')
    const keys = [KEY, 'holdfast:{:b}', ...[KEY, 'holdfast:{:b}'].map(key => `${key}:gone:${OWN}`), COUNTER]
    const call = (request = ''): Promise<unknown> => {
      return client.eval(script.source, keys.length, ...keys, '-', '0', '0', request, OWN + OWN)
    }
    expect(await call(requests.acquire)).toMatch(/^\d+\n\+\d+\n\+\d+$/)
    expect(await call(requests.release)).toMatch(/^\d+\n1\n1$/)
  })

  test('it does nothing on a full server, where an unknown name is refused', async () => {
    await client.set(COUNTER, '100')
    await client.config('SET', 'maxmemory', '1')
    try {
      for (const source of [script.source, slow])
        expect(await outcomeOf(source, requests.acquire)).toMatchObject({
          reply: [expect.stringMatching(/^!OOM/)],
          kept: { [COUNTER]: '"100"' },
        })
    } finally {
      await client.config('SET', 'maxmemory', '0')
    }
  })
})
