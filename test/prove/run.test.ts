import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/lab/engine.ts'
import { startRedisAlone } from '../../src/lab/engines/redis.ts'
import { startSqlite } from '../../src/lab/engines/sqlite.ts'
import { newFolder } from '../../src/lab/servers/folder.ts'
import { type Event, type History, type Kind, readHistory } from '../../src/prove/history.ts'
import { type RunOptions, run } from '../../src/prove/run.ts'

const ttl = 600

async function historyOf(engine: Engine, options: Partial<RunOptions>): Promise<History> {
  const history = join(newFolder('history'), 'events.jsonl')
  const names = ['a', 'b']
  try {
    await run({
      engine,
      seed: 7,
      duration: 8_000,
      ttl,
      clients: 4,
      names,
      faults: [],
      fence: true,
      history,
      ...options,
    })
    return readHistory(history)
  } finally {
    await engine[Symbol.asyncDispose]()
  }
}

function of<K extends Kind>(history: History, kind: K): Event<K>[] {
  return history.filter((event): event is Event<K> => event.kind === kind)
}

/** Writes that the resource accepted although it had seen a higher token. */
function stale(history: History): unknown[] {
  return of(history, 'accepted').filter(({ token, mark }) => BigInt(token) < BigInt(mark))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('clients of a file that are stopped and killed lose leases, and their late writes are refused', async () => {
  const faults = ['client-pause', 'client-kill', 'client-block']
  const history = await historyOf(await startSqlite({ ttl, clocks: false }), { faults })
  expect(history[0]).toMatchObject({ kind: 'run', engine: 'sqlite', seed: 7, faults })
  expect(history.at(-1)).toMatchObject({ kind: 'ended' })
  const granted = of(history, 'granted')
  expect(granted.length).toBeGreaterThan(20)
  expect(new Set(granted.map(({ name, token }) => `${name} ${token}`)).size).toBe(granted.length)
  expect(new Set(of(history, 'fault').map(({ what }) => what))).toEqual(new Set(faults))
  expect(of(history, 'lost').length).toBeGreaterThan(0)
  expect(of(history, 'rejected').length).toBeGreaterThan(0)
  expect(stale(history)).toEqual([])
  const started = of(history, 'started')
  const pids = (events: readonly { pid: number }[]): Set<number> => new Set(events.map(({ pid }) => pid))
  expect(pids(of(history, 'died'))).toEqual(pids(started))
  expect(started.filter(({ pid }) => isAlive(pid))).toEqual([])
})

test('without a fence the late writes are accepted', async () => {
  const engine = await startSqlite({ ttl, clocks: false })
  const history = await historyOf(engine, { faults: ['client-pause'], fence: false })
  expect(of(history, 'rejected')).toEqual([])
  expect(stale(history).length).toBeGreaterThan(0)
})

test('a Redis server that is stopped, killed, made to forget and cut off gives no token twice', async () => {
  const faults = ['client-pause', 'cut', 'late', 'reset', 'server-pause', 'server-kill', 'server-forget']
  const history = await historyOf(await startRedisAlone({ ttl, clocks: false }), { faults, duration: 10_000 })
  const granted = of(history, 'granted')
  expect(granted.length).toBeGreaterThan(20)
  expect(new Set(granted.map(({ name, token }) => `${name} ${token}`)).size).toBe(granted.length)
  expect(new Set(of(history, 'fault').map(({ what }) => what))).toEqual(new Set(faults))
  expect(stale(history)).toEqual([])
})

test('a run that is told to stop mends what is broken and ends what it began', async () => {
  const over = new AbortController()
  const onProgress = (): void => over.abort()
  const options = { faults: ['client-pause', 'server-kill'], duration: 60_000, signal: over.signal, onProgress }
  const history = await historyOf(await startRedisAlone({ ttl, clocks: false }), options)
  expect(of(history, 'healed').length).toBe(of(history, 'fault').length)
  expect(of(history, 'died').length).toBe(of(history, 'started').length)
})
