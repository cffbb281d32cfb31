import { afterAll, describe, expect, test, vi } from 'vitest'
import { conformance, excludedCases } from '../src/conformance/index.ts'
import { ENGINES } from '../src/engines.ts'
import { etcdHarness } from './harnesses/etcd.ts'
import type { StoreHarness } from './harnesses/harness.ts'
import { memoryHarness } from './harnesses/memory.ts'
import { postgresHarnesses } from './harnesses/postgres.ts'
import { redisHarnesses } from './harnesses/redis.ts'
import { redlockHarnesses } from './harnesses/redlock.ts'
import { sqliteHarness } from './harnesses/sqlite.ts'
import { zookeeperHarness } from './harnesses/zookeeper.ts'

const all: StoreHarness[] = [
  memoryHarness(),
  sqliteHarness(),
  ...redisHarnesses(),
  ...redlockHarnesses(),
  ...postgresHarnesses(),
  etcdHarness(),
  zookeeperHarness(),
]

/** `STORES=redis,memory` narrows, by the name of a store or of a harness. */
const wanted = process.env.STORES?.split(',')
const harnesses = all.filter(({ name, store }) => !wanted || wanted.includes(store) || wanted.includes(name))

const timeout = 60_000

// Most of them wait most of the time.
vi.setConfig({ maxConcurrency: 10 })

for (const harness of harnesses) {
  conformance(harness, {
    describe,
    test: (name, body) => test(name, { timeout }, body), // Vitest keeps and changes the options: one object each
    concurrent: (name, body) => test.concurrent(name, { timeout }, body),
  })
}

afterAll(() => Promise.all(harnesses.map(harness => harness.end())))

describe('the table of harnesses', () => {
  test('has a harness for every store', () => {
    expect(ENGINES.filter(({ name }) => !all.some(({ store }) => store === name))).toEqual([])
  })

  // To accept a change: npm test -- test/stores.test.ts --update
  test('excludes what test/excluded-cases.txt lists, and why', async () => {
    const report = all.map(harness => {
      const excluded = excludedCases(harness).map(
        ({ group, name, need, why }) => `  ${group}: ${name} (${need}: ${why})`,
      )
      return [`${harness.name}: ${excluded.length} excluded`, ...excluded]
    })
    await expect(`${report.flat().join('\n')}\n`).toMatchFileSnapshot('excluded-cases.txt')
  })

  test('narrows to harnesses that there are', () => {
    expect(harnesses.length).toBeGreaterThan(0)
  })
})
