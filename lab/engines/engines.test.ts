import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { holdfast } from '../../src/cli/test/holdfast.ts'
import { createLocks } from '../../src/index.ts'
import { FAULTS } from '../faults/fault.ts'
import type { Engine } from './engine.ts'
import { ENGINES } from './index.ts'
import { openAt } from './opening.ts'

// A Redlock of servers that were just started gives nothing for a ttl and 2 s.
vi.setConfig({ testTimeout: 60_000 })

/** The same for all engines. */
const isOfAddress = (fault: string): boolean => FAULTS[fault]?.group === 'address'

test.each(Object.keys(ENGINES))('the lab starts %s, which gives leases and knows its faults', async name => {
  const listed = ENGINES[name]
  const start = await listed?.load()
  const engine = await start?.({ ttl: 1_000, clocks: true })
  if (!listed || !engine) throw new Error(`${name} was not started`)
  try {
    const ofServers = [...listed.faults, ...listed.others].filter(
      fault => !/^client-/.test(fault) && !isOfAddress(fault),
    )
    const network = Object.keys(FAULTS).filter(fault => FAULTS[fault]?.group === 'network')
    expect(
      [
        ...Object.keys(engine.faults).filter(fault => !isOfAddress(fault)),
        ...(engine.endpoints.length > 0 ? network : []),
      ].toSorted(),
    ).toEqual(ofServers.toSorted())
    expect(Object.keys(engine.versions)).toHaveLength(1)
    const locks = createLocks(await openAt(engine.open(engine.endpoints)), { ttl: 1_000 })
    const lease = await locks.acquire('a', { wait: 20_000 })
    expect(lease.token).toBeGreaterThan(0n)
    await lease.release()
    await locks.close()
  } finally {
    await engine[Symbol.asyncDispose]()
  }
})

test('H2: the servers of the lab that can run programs, or can easily have one, require a password', async () => {
  const startOf = async (name: string): Promise<Engine> => {
    const engine = await (await ENGINES[name]?.load())?.({ ttl: 1_000, clocks: false })
    if (!engine) throw new Error(`there is no engine ${name}`)
    onTestFinished(() => engine[Symbol.asyncDispose]())
    return engine
  }
  for (const name of ['postgres', 'postgres-advisory']) {
    const { endpoints } = await startOf(name)
    const { host = '', port = 0 } = endpoints[0] ?? {}
    const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres', password: 'postgres' })
    await expect(client.connect(), name).rejects.toThrow(/password authentication failed/)
  }
  for (const name of ['redis', 'redlock']) {
    const { endpoints } = await startOf(name)
    for (const { host, port } of endpoints) {
      const client = new Redis({ host, port, lazyConnect: true, enableReadyCheck: false })
      client.on('error', () => {})
      await expect(client.ping(), name).rejects.toThrow(/NOAUTH/)
      client.disconnect()
    }
  }
})

test('the help lists every engine and every fault', async () => {
  const { out } = await holdfast(['prove', '--help'])
  for (const name of [...Object.keys(ENGINES), ...Object.keys(FAULTS)]) expect(out).toContain(name)
})
