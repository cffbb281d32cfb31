import { randomUUID } from 'node:crypto'
import { connect } from '../../src/index.ts'

// Asks for a lease, a permit and a run of a job, and prints the answers. Holds until its input ends.
const [url = ''] = process.argv.slice(2)
const drawn = randomUUID()
const locks = await connect(url, { ttl: 30_000 })
const lease = await locks.tryAcquire('reports')
const permit = await locks.semaphore('workers', { limit: 1 }).tryAcquire()
const { ran: runs } = await locks.once('job', { within: 30_000 }, async () => {})
process.stdout.write(`${JSON.stringify({ drawn, lease: lease !== undefined, permit: permit !== undefined, runs })}\n`)
for await (const _ of process.stdin);
await locks.close()
