import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from 'graphile-worker'
import { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import { createLocks } from '../../src/index.ts'
import { postgres } from '../../src/stores/postgres/index.ts'

const { DATABASE_URL = 'postgres://app@localhost/app' } = process.env
const pool = new Pool({ connectionString: DATABASE_URL })
pool.on('error', error => console.error(error.message)) // an idle connection ended: the pool opens another
const fence = postgresFence(pool) // once: await fence.install()
const locks = createLocks(postgres(pool), { ttl: 2_000 }) // once: holdfast migrate --store URL

const runner = await run({
  connectionString: DATABASE_URL,
  noHandleSignals: true, // handled below
  taskList: {
    invoice: async payload => {
      const { order, duration } = payload as { order: string; duration: number }
      // If it stays held, this rejects BUSY, and graphile-worker repeats the job later.
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
    },
  },
})

await once(process, 'SIGTERM')
await runner.stop() // waits for the job
await locks.close()
await pool.end() // its idle connections would keep the process alive for 10 s
