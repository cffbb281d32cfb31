import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import type { Claim } from '../../src/contract/store.ts'
import type { RedisMember } from '../../src/stores/redlock/member.ts'
import { script } from '../../src/stores/redlock/script.ts'
import { simulate, tracesOf, withMistake } from './traces.ts'

const PATH = join(import.meta.dirname, 'redlock.qnt')
const SEED = `0x${Math.floor(Math.random() * 2 ** 48).toString(16)}`
const STEPS = 60

/** A seed that fails once fails again. */
const OPTIONS = { timeout: 300_000, retry: 0 }

/** A state of the specification. `happened`: what its last step did at a server; 0 if nothing. */
interface State {
  readonly happened: {
    readonly server: number
    readonly token: number
    readonly request: {
      readonly verb: string
      readonly claim: number
      readonly attempt: number
      readonly seen: number
      readonly token: number
    }
  }
  readonly servers: readonly (readonly [server: number, { readonly vote: { claim: number; token: number } }])[]
}

let server: RedisServer
let client: Redis
let traces: State[][]

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
  traces = tracesOf<State>(PATH, 200, SEED, STEPS)
})

afterAll(async () => {
  client.disconnect()
  await server.stop()
})

// In half of the traces clocks may jump, so the exclusion is judged in the others alone.
test(`random messages break no invariant of the specification (seed ${SEED})`, OPTIONS, () => {
  expect(simulate(PATH, 2_000, SEED, { steps: STEPS })).toMatch(/No violation found/)
})

test(`a server decides each trace of the specification as it does (seed ${SEED})`, OPTIONS, async () => {
  const happened = traces.flat().map(each => each.happened)
  const seen = new Set(happened.map(({ request, token }) => `${request.verb} ${token > 0}`))
  for (const verb of ['vote', 'commit', 'renew', 'release', 'concede'])
    expect([...seen]).toEqual(expect.arrayContaining([`${verb} true`, `${verb} false`]))
  expect(await disagreements(script.source)).toEqual([])
})

test.each([
  ['a commit compares no token', ' or token ~= seen', ''],
  ['a release raises no token', 'known > 0 and freed(known, token) or token', 'token'],
  ['a withdrawal ends a later attempt', "> tonumber(attempt) then return '0' end", "> 1e17 then return '0' end"],
  [
    'a renewal restores below a higher token',
    "and not (held and known == 0) then return '0' end\n  if not held and",
    "and false then return '0' end\n  if not held and",
  ],
  ['a withdrawn attempt is granted', 'tonumber(attempt) <= tonumber(gone)', 'false'],
])('traces find a server with a mistake: %s', OPTIONS, async (_, from, to) => {
  expect(script.source.split(from)).toHaveLength(2)
  expect(await disagreements(script.source.replace(from, to))).not.toEqual([])
})

test.each([
  ['excludes: a vote lapses while its claim holds', 'renewed.size() >= MAJORITY', 'renewed.size() >= 0'],
  ['rises: the highest vote is not written back', 'else if (alike.size() >= MAJORITY)', 'else if (true)'],
  ['rises: a server grants a token again', 'most(s.last + 1, r.attempt)', 'r.attempt'],
])('the invariants find a specification with a mistake: %s', OPTIONS, (_, from, to) => {
  expect(() => simulate(withMistake(PATH, from, to), 5_000, '0x2', { steps: STEPS })).toThrow('Invariant violated')
})

/** What a server with this script answers otherwise than the traces say. */
async function disagreements(source: string): Promise<string[]> {
  vi.resetModules()
  const sha = createHash('sha1').update(source).digest('hex')
  vi.doMock('../../src/stores/redlock/script.ts', async original => ({
    ...(await original<typeof import('../../src/stores/redlock/script.ts')>()),
    script: { ...script, source, sha },
  }))
  const { RedisMember } = await import('../../src/stores/redlock/member.ts')
  const { Identities } = await import('../../src/stores/redlock/identity.ts')
  const { driverOf } = await import('../../src/stores/redis/driver.ts')
  const about = { name: 'one', prefix: sha, maxTtl: 0, acquireShare: 1 / 3, identities: new Identities() }
  const member = new RedisMember(driverOf(client, 'it'), about)
  try {
    const found = await Promise.all(traces.map((trace, index) => disagreement(member, `trace ${index}`, trace)))
    return found.filter(each => each !== undefined)
  } finally {
    member.close()
    vi.doUnmock('../../src/stores/redlock/script.ts')
  }
}

/** The first step of a trace at which the server answers otherwise. Each server of the specification is a name of one. */
async function disagreement(member: RedisMember, trace: string, states: readonly State[]): Promise<string | undefined> {
  for (const [step, { happened, servers }] of states.entries()) {
    const { server: at, request, token } = happened
    if (at === 0) continue
    const name = `${trace} at ${at}`
    const said = await ask(member, name, request, step)
    const vote = servers.find(([number]) => number === at)?.[1].vote
    const { holder } = (await member.look(name, 0)).value
    const [is, should] = [
      [said, holder?.id, holder?.token],
      [token, vote?.claim ? idOf(vote.claim) : undefined, vote?.claim ? vote.token : undefined],
    ].map(each => JSON.stringify(each))
    if (is !== should) return `${trace}, step ${step}, ${JSON.stringify(request)}: ${is}, not ${should}`
  }
  return undefined
}

const idOf = (claim: number): string => String(claim).repeat(32)

/** The token that the server answers; 1 for another answer than no. */
async function ask(
  member: RedisMember,
  name: string,
  request: State['happened']['request'],
  step: number,
): Promise<number> {
  const { verb, attempt, seen } = request
  const about = { name, id: idOf(request.claim), owner: 'it', note: '', ttl: 60_000, queue: false }
  const claim: Claim = { ...about, token: BigInt(request.token) }
  if (verb === 'vote') {
    const { value } = await member.vote(claim, attempt)
    return value?.kind === 'granted' ? value.token : 0
  }
  if (verb === 'commit') return (await member.commit(claim, attempt, seen, request.token)).value ? request.token : 0
  if (verb === 'renew') return (await member.renew(claim, true, step)).value.token
  if (verb === 'release') return Number((await member.release(claim)).value)
  // A vote that ends by itself leaves the last token as it is, as a withdrawal does.
  return Number((await member.concede(claim, verb === 'lapse' ? Number.MAX_SAFE_INTEGER : attempt, false)).value)
}
