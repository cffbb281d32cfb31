/**
 * A service of which one replica leads, with what Kubernetes needs: two probes, and an end in time at SIGTERM.
 *
 *     HOLDFAST_STORE=sqlite:leases.db ./script/node examples/kubernetes.ts
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type Lease } from '../src/index.ts' // in your project: 'holdfast'

const { HOLDFAST_STORE, HOSTNAME = 'local', PORT } = process.env
// A file in each pod would let every replica lead.
if (!HOLDFAST_STORE) throw new Error('HOLDFAST_STORE is missing: give all replicas one URL, such as redis://host:6379')
const locks = await connect(HOLDFAST_STORE, { ttl: 10_000, owner: HOSTNAME }) // HOSTNAME is the name of the pod
const election = locks.election('scheduler', { note: HOSTNAME, grace: 5_000 })

const probes = createServer((request, response) => {
  const health = election.health() // without secrets
  const isWell = request.url === '/live' ? !health.stuck : health.ok // /live: restart; /health: readiness and alerts
  response.writeHead(isWell ? 200 : 503).end(JSON.stringify(health))
})
probes.listen(Number(PORT ?? 0))

/** The work of the leader. It returns soon after the signal aborts. */
async function schedule(lease: Lease): Promise<void> {
  console.log(`leads with token ${lease.token}`)
  while (!lease.signal.aborted) {
    // Write with fence.transaction(lease, ...): a paused leader may believe that it still leads.
    await sleep(1_000, undefined, { signal: lease.signal }).catch(() => {})
  }
  console.log('the work has ended')
}

const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
if (!PORT) setTimeout(() => process.kill(process.pid, 'SIGTERM'), 500) // a trial run without a port ends by itself

const onError = (error: unknown, failures: number) => console.error(`failure ${failures} of the leader`, error)
await election.run({ signal: stop.signal, onError }, schedule) // resolves when the work has ended and the name is released
probes.close()
await locks.close()
