import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conformanceCases, excludedCases } from '../lab/conformance/index.ts'
import { ENGINES } from '../src/engines.ts'
import { azureBlobHarness } from './harnesses/azure-blob.ts'
import { memoryRegisterHarness, sqlRegisterHarness } from './harnesses/cas.ts'
import { dynamodbHarness } from './harnesses/dynamodb.ts'
import { etcdHarness } from './harnesses/etcd.ts'
import { type StoreHarness, usualCases } from './harnesses/harness.ts'
import { memoryHarness } from './harnesses/memory.ts'
import { mysqlHarness } from './harnesses/mysql.ts'
import { natsHarness } from './harnesses/nats.ts'
import { advisoryHarness, postgresHarnesses } from './harnesses/postgres.ts'
import { redisClientHarnesses, redisHarness, redisTopologyHarnesses } from './harnesses/redis.ts'
import { redlockHarnesses } from './harnesses/redlock.ts'
import { sqliteHarness } from './harnesses/sqlite.ts'
import { zookeeperHarness } from './harnesses/zookeeper.ts'

const sources: readonly (() => StoreHarness | StoreHarness[])[] = [
  memoryHarness,
  sqliteHarness,
  redisHarness,
  redisClientHarnesses,
  redisTopologyHarnesses,
  redlockHarnesses,
  postgresHarnesses,
  advisoryHarness,
  mysqlHarness,
  etcdHarness,
  zookeeperHarness,
  azureBlobHarness,
  memoryRegisterHarness,
  sqlRegisterHarness,
  dynamodbHarness,
  natsHarness,
]
const all = sources.flatMap(source => source())

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

test('every store has a harness', () => {
  expect(ENGINES.filter(({ name }) => !all.some(({ store }) => store === name))).toEqual([])
})

test('one test file runs each harness', () => {
  const files = globSync('src/stores/**/*.test.ts', { cwd: root })
  const run = files.flatMap(file =>
    Array.from(read(file).matchAll(/^conform\(\W*(\w+)\(\)\)$/gm), ([, name]) => String(name)),
  )
  expect(new Set(run)).toEqual(new Set(sources.map(({ name }) => name)))
  expect(run).toHaveLength(sources.length)
})

test('a harness repeats only a harness that runs all of its cases', () => {
  const whole = all.filter(({ repeats }) => !repeats).map(({ name }) => name)
  for (const { repeats } of all) if (repeats) expect(whole).toContain(repeats)
})

// To accept a change: npm test -- test/harnesses.test.ts --update
test('test/excluded-cases.txt lists the cases that a harness excludes, and why', async () => {
  const report = all.map(harness => {
    const { name, repeats } = harness
    const rest = conformanceCases(harness).length - usualCases(harness).length
    const excluded = excludedCases(harness)
    return [
      `${name}: ${excluded.length} excluded${repeats ? `; ${rest} only with --full, because it repeats ${repeats}` : ''}`,
      ...excluded.map(({ group, name, need, why }) => `  ${group}: ${name} (${need}: ${why})`),
    ]
  })
  await expect(`${report.flat().join('\n')}\n`).toMatchFileSnapshot('excluded-cases.txt')
})
