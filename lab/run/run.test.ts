import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Engine } from '../engines/engine.ts'
import { ENGINES } from '../engines/index.ts'
import { startRedisAlone } from '../engines/redis.ts'
import { startRedlock } from '../engines/redlock.ts'
import { startSqlite } from '../engines/sqlite.ts'
import { judge } from '../judge/checker.ts'
import type { Least } from '../judge/coverage.ts'
import { type Event, type History, type Kind, readHistory } from '../judge/history.ts'
import { table } from '../report/table.ts'
import { newFolder } from '../servers/folder.ts'
import { sharedOf } from './job.ts'
import { type RunOptions, run } from './run.ts'

const ttl = 600
/** Milliseconds. A run ends when it shows enough; this ends one that never does. */
const LONGEST = 300_000
vi.setConfig({ testTimeout: LONGEST + 30_000 })

/** The history of a run that ends when it shows enough. */
async function historyOf(
  engine: Engine,
  enough: (history: History) => boolean,
  options: Partial<RunOptions>,
): Promise<History> {
  const history = join(newFolder('history'), 'events.jsonl')
  const over = new AbortController()
  const onProgress = (): void => void (enough(readHistory(history)) && over.abort())
  const clients = { clients: 4, names: ['a', 'b'], pace: 50 }
  const usual = { seed: 7, duration: LONGEST, ttl, ...clients, fence: true, signal: over.signal }
  try {
    await run({ engine, faults: [], history, onProgress, ...usual, ...options })
    return readHistory(history)
  } finally {
    await engine[Symbol.asyncDispose]()
  }
}

function faultsIn(history: History): ReadonlySet<string> {
  return new Set(of(history, 'fault').map(({ what }) => what))
}

function of<K extends Kind>(history: History, kind: K): Event<K>[] {
  return history.filter((event): event is Event<K> => event.kind === kind)
}

/** Writes that the resource accepted although it had seen a higher token. */
function stale(history: History): unknown[] {
  return of(history, 'accepted').filter(({ token, mark }) => BigInt(token) < BigInt(mark))
}

/** Tokens that two leases of one name had. */
function repeated(history: History): unknown[] {
  const tokens = of(history, 'granted').map(({ name, token }) => `${name} ${token}`)
  return tokens.filter((token, index) => tokens.indexOf(token) < index)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('clients of a file that are paused and killed lose leases, and their late writes are refused', async () => {
  const faults = ['client-pause', 'client-kill', 'client-block']
  const enough = (history: History): boolean =>
    faultsIn(history).size === faults.length &&
    (['granted', 'lost', 'rejected'] as const).every(kind => of(history, kind).length > 0)
  const history = await historyOf(await startSqlite({ ttl, clocks: false }), enough, { faults })
  expect(history[0]).toMatchObject({ kind: 'run', engine: 'sqlite', seed: 7, faults })
  expect(history.at(-1)).toMatchObject({ kind: 'ended' })
  expect(stale(history)).toEqual([])
  expect(repeated(history)).toEqual([])
  const started = of(history, 'started')
  const pids = (events: readonly { pid: number }[]): Set<number> => new Set(events.map(({ pid }) => pid))
  expect(pids(of(history, 'died'))).toEqual(pids(started))
  expect(started.filter(({ pid }) => isAlive(pid))).toEqual([])
})

test('without a fence the late writes are accepted', async () => {
  const enough = (history: History): boolean => stale(history).length > 0
  const engine = await startSqlite({ ttl, clocks: false })
  const history = await historyOf(engine, enough, { faults: ['client-pause'], fence: false })
  expect(of(history, 'rejected')).toEqual([])
  expect(stale(history).length).toBeGreaterThan(0)
})

/** What a short run must show. The long runs of ./script/prove also show refused writes. */
const LITTLE: Least = {
  grants: 20,
  takeovers: 1,
  losses: 1,
  followed: 1,
  handovers: 0,
  accepted: 20,
  answers: 50,
  rejected: 0,
}

test.each(Object.entries(ENGINES))('%s keeps its promises while each of its faults happens', async (_, listed) => {
  const enough = (history: History): boolean => judge(history, LITTLE).rows.every(({ missing }) => missing.length === 0)
  const start = await listed.load()
  const engine = await start({ ttl: 1_000, clocks: false })
  const { death, election } = engine.bound
  // A busy machine is slow, but a deadlock is still found.
  const patient = { ...engine, bound: { death: death + 3_000, election: election + 3_000 } }
  const history = await historyOf(patient, enough, { faults: listed.faults, ttl: 1_000, names: ['a', 'b', 'c'] })
  const verdict = judge(history, LITTLE)
  expect(verdict.outcome, table(verdict)).toBe('passed')
})

test('clients of five servers are served while the first hangs, and while the name of one cannot be looked up', async () => {
  const faults = ['first-address', 'name-server']
  const enough = (history: History): boolean => new Set(of(history, 'healed').map(({ what }) => what)).size === 2
  const engine = await startRedlock({ ttl: 1_000, clocks: false })
  const patient = { ...engine, bound: { death: 4_000, election: 4_000 } } // a busy machine is slow
  const least = { ...LITTLE, takeovers: 0 } // no client dies
  const { rows } = judge(await historyOf(patient, enough, { faults, ttl: 1_000 }), least)
  expect(rows.flatMap(({ violations }) => violations)).toEqual([])
  expect(rows.find(({ promise }) => promise === 'faults')?.outcome).toBe('passed')
})

test('permits, readers and writers keep their promises while clients are paused and killed', async () => {
  const faults = ['client-pause', 'client-kill']
  const names = ['a', 'b']
  const enough = (history: History): boolean => {
    const roles = new Set(of(history, 'granted').map(({ role }) => role))
    return roles.size === 3 && judge(history, LITTLE).rows.every(({ missing }) => missing.length === 0)
  }
  const engine = await startSqlite({ ttl, clocks: false })
  const patient = { ...engine, bound: { death: 4_000, election: 4_000 } } // a busy machine is slow
  const history = await historyOf(patient, enough, { faults, names, shared: sharedOf(names, 2, true) })
  const verdict = judge(history, LITTLE)
  expect(verdict.outcome, table(verdict)).toBe('passed')
  const grants = of(history, 'granted')
  expect(grants.filter(({ role }) => role === 'writer').every(({ slots }) => slots === undefined)).toBe(true)
  expect(grants.filter(({ name }) => name === 'a').every(({ slots = [] }) => slots.length <= 2)).toBe(true)
})

test('a run that is stopped repairs its faults and ends its processes', async () => {
  const faults = ['client-pause', 'server-kill']
  const enough = (history: History): boolean => faultsIn(history).size === faults.length
  const history = await historyOf(await startRedisAlone({ ttl, clocks: false }), enough, { faults })
  expect(of(history, 'healed').length).toBe(of(history, 'fault').length)
  expect(of(history, 'died').length).toBe(of(history, 'started').length)
})
