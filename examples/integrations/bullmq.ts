import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { DelayedError, Worker } from 'bullmq'
import { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import { connect, LeaseError } from '../../src/index.ts'

const { REDIS_URL = 'redis://localhost', DATABASE_URL = 'postgres://app@localhost/app' } = process.env
const pool = new Pool({ connectionString: DATABASE_URL })
pool.on('error', error => console.error(error.message)) // an idle connection ended: the pool opens another
const fence = postgresFence(pool) // once: await fence.install()
const locks = await connect(REDIS_URL, { ttl: 2_000 })

const worker = new Worker<{ order: string; duration: number }>(
  'invoices',
  async (job, token) => {
    const { order, duration } = job.data
    try {
      await locks.using(`invoice ${order}`, { wait: 5_000 }, async lease => {
        await fence.touch(lease) // from now on every older run is refused
        await sleep(duration, undefined, { signal: lease.signal }) // your work
        await fence.transaction(lease, client =>
          client.query('insert into invoice values ($1, $2) on conflict ("order") do update set by = excluded.by', [
            order,
            `${lease.token}`,
          ]),
        )
      })
    } catch (error) {
      if (!LeaseError.is(error, 'BUSY')) throw error // fails the job: BullMQ repeats it by its `attempts`
      await job.moveToDelayed(Date.now() + 10_000, token) // held by another run: look again, without counting an attempt
      throw new DelayedError()
    }
  },
  { connection: { url: REDIS_URL }, lockDuration: 2_000, stalledInterval: 1_000 },
)
worker.on('error', error => console.error(error.message)) // also of a paused run that BullMQ gave to another worker

await once(process, 'SIGTERM')
await worker.close() // waits for the job
await locks.close()
await pool.end() // its idle connections would keep the process alive for 10 s
