/**
 * A service that refuses a client that lost its lease and does not know it. One client does not renew and sends its price
 * too late. It gets 412, and the price of the next client stays.
 *
 *     ./script/node examples/fenced-http.ts
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { fenceHeaders, fenceOf, nodeFence, staleAnswer, throwIfStale } from '../src/fencing/http/index.ts' // in your project: 'holdfast/fencing/http'
import { sqliteFence } from '../src/fencing/sqlite/index.ts' // 'holdfast/fencing/sqlite'
import { createLocks, type Lease, LeaseError } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

// The service. Its high-water marks are in the file of its data, so they last as long.
const database = new DatabaseSync('prices.db', { timeout: 5_000 })
database.exec('create table if not exists price (item text primary key, cents integer not null)')
const set = database.prepare("insert or replace into price values ('hammer', ?)")
const fence = sqliteFence(database)
fence.install()
const checkFence = nodeFence(fence.marks, { resource: 'prices' })

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!(await checkFence(request, response))) return // it answered 412 for a stale token, 400 or 428 without one
  const cents = Number(await text(request))
  fence.transaction(fenceOf(request), () => set.run(cents)) // checks again, in the transaction of the write
  response.writeHead(204).end()
}
const server = createServer((request, response) => {
  serve(request, response).catch(error => {
    const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
    response.writeHead(status, headers).end(body)
  })
})
await once(server.listen(0, '127.0.0.1'), 'listening')

// The clients.
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/prices`

async function setPrice(lease: Pick<Lease, 'name' | 'token' | 'owner'>, cents: number): Promise<void> {
  const response = await fetch(url, { method: 'PUT', headers: fenceHeaders(lease), body: String(cents) })
  console.log(`${lease.owner} gets ${response.status}`)
  await throwIfStale(response)
  if (!response.ok) throw new Error(`the service answered ${response.status}`)
}

const locks = createLocks(sqlite('leases.db'))
const slow = await locks.acquire('prices', { owner: 'the first client', ttl: 1_000, heartbeat: false })
await locks.using('prices', { owner: 'the next client' }, lease => setPrice(lease, 900))
try {
  // Without the lease object, as in a paused process: this process would not send a lease that it knows to be over.
  const { name, token, owner } = slow
  await setPrice({ name, token, owner }, 950)
} catch (error) {
  const { code } = LeaseError.from(error) ?? {}
  if (code !== 'STALE_TOKEN') throw error
  console.log(`it stops: ${code}`)
}
console.log(`a hammer costs ${database.prepare('select cents from price').get()?.cents}`)

await locks.close()
server.close()
database.close()
