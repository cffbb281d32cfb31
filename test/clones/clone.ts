import { randomUUID } from 'node:crypto'
import { connect } from '../../src/index.ts'
import { runCoordinator } from '../../src/integrations/node-cron/index.ts'

// Asks for a lease, a permit and a scheduled time, and prints the answers. Holds until its input ends.
const [url = ''] = process.argv.slice(2)
const drawn = randomUUID()
const locks = await connect(url, { ttl: 30_000 })
const lease = await locks.tryAcquire('reports')
const permit = await locks.semaphore('workers', { limit: 1 }).tryAcquire()
const runs = await runCoordinator(locks, { overlap: true }).shouldRun('reports:2026-01-31T03:00:00.000Z', 30_000)
process.stdout.write(`${JSON.stringify({ drawn, lease: lease !== undefined, permit: permit !== undefined, runs })}\n`)
for await (const _ of process.stdin);
await locks.close()
