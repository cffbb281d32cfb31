import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished, test } from 'vitest'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients, type Owned } from '../../../../test/harnesses/redis.ts'
import { acquire, claimOf, host, signal, storeOf } from './support.ts'

// Not glide: its client connects before the store exists.
const connecting = Object.entries(clients).filter(([name]) => name !== 'glide')

/** Opens a store and closes it: first in the same turn of the event loop, then ever later. */
async function closeWhileConnecting(create: (port: number) => Promise<Owned>, port: number): Promise<void> {
  for (let turns = 0; turns < 6; turns += 1) {
    const { client, close } = await create(port)
    const store = storeOf(client)
    const asked = Promise.allSettled([acquire(store, claimOf('a')), store.watch?.(claimOf('a'), () => {}, signal)])
    for (let turn = 0; turn < turns; turn += 1) await new Promise(resolve => setImmediate(resolve))
    await store[Symbol.asyncDispose]()
    await asked
    await close()
  }
}

test.each(connecting)('%s leaves no connection when it is closed while it connects', async (_, create) => {
  await using server = await startRedis()
  await closeWhileConnecting(create, server.port)
  // INFO counts its own connection. The server accepted all others before.
  await until('no other is left', async () => (await server.info('clients')).connected_clients === '1')
})

test.each(connecting)('%s leaves none at a server that accepts connections and says nothing', async (_, create) => {
  const accepted = new Set<Socket>()
  const mute = createServer(socket => {
    accepted.add(socket)
    socket.on('error', () => {}).on('close', () => accepted.delete(socket))
    socket.resume()
  }).listen(0, host)
  await once(mute, 'listening')
  onTestFinished(() => void mute.close())
  const { port } = mute.address() as AddressInfo
  await closeWhileConnecting(create, port)
  const last = connect(port, host)
  onTestFinished(() => void last.destroy())
  await until('the last is accepted', () => [...accepted].some(({ remotePort }) => remotePort === last.localPort))
  await until('no other is left', () => accepted.size === 1)
})
