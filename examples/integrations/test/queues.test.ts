import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Queue } from 'bullmq'
import { makeWorkerUtils } from 'graphile-worker'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { type PostgresFence, postgresFence } from '../../../src/fencing/postgres/index.ts'
import { migrate } from '../../../src/index.ts'
import { run } from '../../../test/browser/process.ts'

/** Queues look for stalled jobs now and then, and a machine may be busy. */
const PATIENT = { limit: 45_000, every: 50 }

let redis: RedisServer
let postgres: PostgresServer
let pool: Pool
let fence: PostgresFence<unknown>

beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  await postgres.query('create table invoice ("order" text primary key, by text not null)')
  pool = new Pool({ connectionString: postgres.url() })
  fence = postgresFence(pool)
  await Promise.all([fence.install(), migrate(postgres.url())])
})
afterAll(async () => {
  await pool?.end()
  await Promise.all([redis?.stop(), postgres?.stop()])
})

/** `again` makes the queue run the job of the paused worker again, if it does not do so by itself. */
async function pauseInTheMiddle(recipe: string, order: string, again: () => Promise<unknown>): Promise<void> {
  Object.assign(process.env, { REDIS_URL: redis.url, DATABASE_URL: postgres.url() })
  const start = (): ChildProcess => run(join(import.meta.dirname, '..', recipe)).child
  const token = async (): Promise<bigint | undefined> => (await fence.marks.list(`invoice ${order}`))[0]?.token
  const first = start()
  const older = await until('the first run has begun', token, PATIENT)
  first.kill('SIGSTOP')
  start()
  await again()
  await until('the job runs again', async () => ((await token()) ?? 0n) > older, PATIENT)
  const written = (): Promise<{ by: string }[]> => postgres.query('select by from invoice where "order" = $1', [order])
  await until('the second run has written', async () => (await written()).length === 1, PATIENT)
  await expect(fence.touch({ name: `invoice ${order}`, token: older })).rejects.toMatchObject({ code: 'STALE_TOKEN' })
  // What the paused worker does next is over when it has ended: it finishes its job first.
  first.kill('SIGCONT')
  const ended = once(first, 'exit')
  first.kill('SIGTERM')
  await ended
  expect(await written()).toEqual([{ by: `${await token()}` }])
}

test('BullMQ: a paused worker does not write after its job has run again', async () => {
  const queue = new Queue('invoices', { connection: { url: redis.url } })
  onTestFinished(() => queue.close())
  await queue.add('invoice', { order: 'A-1', duration: 1_500 })
  await pauseInTheMiddle('bullmq.ts', 'A-1', async () => {}) // the second worker finds the stalled job
  await until('the job is completed', async () => (await queue.getCompletedCount()) === 1, PATIENT)
})

test('graphile-worker: a paused worker does not write after its job has run again', async () => {
  const utils = await makeWorkerUtils({ connectionString: postgres.url() })
  onTestFinished(async () => utils.release())
  await utils.migrate()
  await utils.addJob('invoice', { order: 'A-2', duration: 1_500 })
  await pauseInTheMiddle('graphile-worker.ts', 'A-2', async () => {
    const jobs = await postgres.query<{ locked_by: string }>('select locked_by from graphile_worker.jobs')
    await utils.forceUnlockWorkers(jobs.map(({ locked_by }) => locked_by)) // else the job runs again after 4 hours
  })
})
