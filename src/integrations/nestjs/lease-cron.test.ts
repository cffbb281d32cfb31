import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type INestApplication, Module } from '@nestjs/common'
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule'
import { Test } from '@nestjs/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { createLocks } from '../../create-locks.ts'
import { currentLease } from '../../current-lease.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { LeaseCron, type LeaseCronOptions, LeaseModule } from './index.ts'

const HOUR = 3_600_000
const LONGEST = 2 ** 31 - 1
const MARKER = 'daily\u241fran'
let folder: string
const apps: INestApplication[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-nestjs-'))
})

afterEach(async () => {
  await Promise.all(apps.splice(0).map(app => app.close()))
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a replica whose method has these decorators, the lowest last. Returns how to call the method by hand. */
async function replica(work: () => unknown, ...decorators: MethodDecorator[]): Promise<() => unknown> {
  class Jobs {
    run(): unknown {
      return work()
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run') as PropertyDescriptor
  for (const decorator of decorators.reverse()) decorator(Jobs.prototype, 'run', descriptor)
  Object.defineProperty(Jobs.prototype, 'run', descriptor)
  class Root {}
  const leases = LeaseModule.forRoot({ open: () => createLocks(sqlite(join(folder, 'leases.db')), { ttl: 10_000 }) })
  Module({ imports: [leases, ScheduleModule.forRoot()], providers: [Jobs] })(Root)
  const app = (await Test.createTestingModule({ imports: [Root] }).compile()).createNestApplication()
  apps.push(app)
  await app.init()
  const job = app.get(Jobs)
  return () => job.run()
}

test('one of two replicas runs each scheduled time, under a lease', async () => {
  const tokens: (bigint | undefined)[] = []
  const names = new Set<string | undefined>()
  const work = (): void => {
    tokens.push(currentLease()?.token)
    names.add(currentLease()?.name)
  }
  const begun = Math.floor(Date.now() / 1_000)
  for (const _ of 'ab') await replica(work, LeaseCron(), Cron('* * * * * *', { name: 'tick' }))
  await until('three runs', () => tokens.length >= 3)
  const seconds = Math.floor(Date.now() / 1_000) - begun
  expect(tokens.length).toBeLessThanOrEqual(seconds)
  expect(new Set(tokens).size).toBe(tokens.length)
  expect([...names]).toEqual(['tick'])
})

test('a scheduled time is skipped while the run before goes on', async () => {
  let runs = 0
  let asked = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const work = (): Promise<void> => {
    runs++
    return promise
  }
  await replica(work, LeaseCron(), Cron('* * * * * *', { name: 'long' }))
  await replica(() => asked++, Cron('* * * * * *', { name: 'clock' }))
  await until('three ticks', () => runs > 0 && asked >= 3)
  expect(runs).toBe(1)
  resolve()
  await until('the next run', () => runs > 1)
})

test('a success counts for half the time between two scheduled ones, and a failure does not count', async () => {
  let runs = 0
  const name = 'failing'
  const fails = (): never => {
    runs++
    throw new Error('disk full')
  }
  for (const _ of 'ab') await replica(fails, LeaseCron(), Cron('* * * * * *', { name }))
  await until('both replicas, or one twice', () => runs >= 2)
  const locks = createLocks(sqlite(join(folder, 'leases.db')))
  expect((await locks.inspect('failing\u241fran')).holders).toEqual([])

  for (const [expression, options, within] of [
    ['0 3 * * *', {}, 12 * HOUR],
    ['0 3,4 * * *', {}, HOUR / 2],
    ['*/7 * * * *', {}, 2 * 60_000], // from minute 56 to the next hour
    ['0 0 1 1 *', {}, LONGEST], // once a year
    ['0 3 * * *', { within: 5 * HOUR }, 5 * HOUR],
  ] as const) {
    const name = `${expression} ${JSON.stringify(options)}`
    const job = await replica(
      () => 'done',
      LeaseCron(options as LeaseCronOptions),
      Cron(expression, { name, timeZone: 'Etc/UTC' }),
    )
    expect(await job(), 'called by hand').toBe('done')
    const [marker] = (await locks.inspect(`${name}\u241fran`)).holders
    expect(marker?.remaining, name).toBeGreaterThan(within - 60_000)
    expect(marker?.remaining, name).toBeLessThanOrEqual(within)
    expect(await job(), 'again').toBeUndefined()
  }
  await locks.close()
})

test('after the schedule was changed, a success counts for half the new time', async () => {
  const made = async (name: string, expression: string): Promise<() => unknown> =>
    replica(() => 'done', LeaseCron(), Cron(expression, { name, timeZone: 'Etc/UTC' }))
  await made('other', '0 * * * *')
  const hourly = apps[0]?.get(SchedulerRegistry).getCronJob('other').cronTime
  const job = await made('daily', '0 3 * * *')
  await job()
  const locks = createLocks(sqlite(join(folder, 'leases.db')))
  await locks.break(MARKER)
  if (hourly) apps[1]?.get(SchedulerRegistry).getCronJob('daily').setTime(hourly)
  expect(await job()).toBe('done')
  expect((await locks.inspect(MARKER)).holders[0]?.remaining).toBeLessThanOrEqual(HOUR / 2)
  await locks.close()
})

test('it refuses a method without a named schedule, and an offset', () => {
  const method = (cron: object | undefined): (() => unknown) => {
    const descriptor = { value: () => 0 }
    if (cron) Cron('* * * * * *', cron)({}, 'run', descriptor)
    return () => LeaseCron()({}, 'run', descriptor)
  }
  expect(method(undefined)).toThrow('directly above @Cron')
  expect(method({})).toThrow('directly above @Cron')
  expect(method({ name: 'tick', utcOffset: 60 })).toThrow('timeZone')
  const once = { value: () => 0 }
  Cron(new Date(), { name: 'tick' })({}, 'run', once)
  expect(() => LeaseCron()({}, 'run', once)).toThrow('a text such as')
})
