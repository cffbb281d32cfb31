import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pick, type Random, seeded } from '../../../../lab/faults/random.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { script } from '../verbs.ts'
import { outcome, serverTime } from './outcome.ts'

const SEEDS = 60
const LENGTH = 24

const NAMES = ['a', 'b', 'c'].map(name => `holdfast:{:${name}}`)
const IDS = ['1', '2', '3', '4', '5', '6'].map(digit => digit.repeat(32))
const LATEST = 9_999_999_999_999

/** The script with a constant time, so that many calls happen at the same moment. */
const source = script.source.replace("call('TIME')", `{ '${Math.floor(Date.now() / 1_000)}', '0' }`)

/** One request as the script reads it. */
interface Request {
  readonly key: string
  readonly line: string
  readonly id: string
}

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

/** What a name may have been before: also of another type, or of another format. */
async function prepare(random: Random): Promise<void> {
  await client.flushall()
  for (const key of NAMES) {
    const now = await serverTime(client)
    const state = pick(random, ['', '', '', 'type', 'format', 'ahead'])
    if (state === 'type') await client.hset(key, 'field', 'value')
    if (state === 'format') await client.set(key, '2 something')
    if (state === 'ahead') await client.set(key, `1 ${now + 90_000} held 0 7 10000 ${pick(random, IDS)} ["o","n"]`)
  }
}

function requestOf(random: Random): Request {
  const [id, key, queues] = [pick(random, IDS), pick(random, NAMES), pick(random, [0, 1])]
  const [limit, units] = [pick(random, [2, 3, 3, 3, 2_147_483_647]), pick(random, [1, 1, 2])]
  return pick(random, [
    { key, id, line: `acquire 32 ${LATEST} 10000 3610000 ${queues} ["o","n"]` },
    ...Array.from({ length: 4 }, () => ({
      key,
      id,
      line: `acquire 32 ${LATEST} 10000 3610000 ${queues} ${limit} ${units} ["o","n"]`,
    })),
    { key, id, line: `release 32 0 5000 0 0 ` },
    { key, id, line: `renew 32 ${LATEST} 20000 3620000 0 ` },
    { key, id, line: `renewShared 32 ${LATEST} 20000 3620000 1 ` },
    { key, id, line: `annotate 32 ${LATEST} 0 0 0 ["o","a longer note"]` },
    { key, id, line: `annotateShared 32 ${LATEST} 0 0 1 ["o","another note"]` },
    { key, id: '-', line: `break 1 ${LATEST} 0 3600000 0 - -` },
    { key, id: '-', line: `break 1 ${LATEST} 0 3600000 0 - ${pick(random, [0, 1])}` },
    { key, id: '-', line: `keep 1 ${LATEST} 5000 0 0 ${IDS.slice(0, 3).join(' ')}` },
  ])
}

/** The answers of one call, the messages to waiters of its caller, and what the server has afterwards. */
async function call(requests: readonly Request[]) {
  const keys = [...requests.map(({ key }) => key), 'holdfast:token']
  const args = ['x', '0', '0', ...requests.flatMap(({ line, id }) => [line, id])]
  const { reply, kept } = await outcome(client, source, keys, args)
  const [answers, woken] = [(reply as string[]).slice(0, requests.length), (reply as string[]).slice(requests.length)]
  return { answers, woken: woken.filter(messages => messages !== ''), kept }
}

/** For how long a key lives depends on the clock of the server, which goes on meanwhile. */
function withoutLives(kept: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(kept).filter(([key]) => !key.startsWith('life of ')))
}

test('requests of one call do what they do in calls of their own', async () => {
  let messages = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seeded(seed)
    const requests = Array.from({ length: LENGTH }, () => requestOf(random))
    await prepare(seeded(seed))
    const together = await call(requests)
    await prepare(seeded(seed))
    const alone = []
    for (const request of requests) alone.push(await call([request]))
    expect(together.answers, `seed ${seed}`).toEqual(alone.flatMap(({ answers }) => answers))
    const [kept, wanted] = [together.kept, alone.at(-1)?.kept ?? {}].map(withoutLives)
    expect(kept, `seed ${seed}`).toEqual(wanted)
    // A call wakes once, after its last request: at least those that this one would wake.
    const woken = together.woken.flatMap(said => said.split(','))
    const last = alone.at(-1)?.woken.flatMap(said => said.split(',')) ?? []
    expect(woken, `seed ${seed}`).toEqual(expect.arrayContaining(last))
    messages += woken.length
  }
  expect(messages).toBeGreaterThan(0)
})
