import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { type Access, dashboard } from '../../src/dashboard/dashboard.ts'
import { createLocks, type Locks } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { memory } from '../../src/stores/memory/index.ts'

/** Serves the dashboard of a store until the test has ended. */
export async function served(
  store: Store = memory(),
  access: Access = 'operate',
): Promise<{ locks: Locks; address: string }> {
  const locks = createLocks(store, { ttl: 600_000, heartbeat: false })
  const board = dashboard(locks, { authorize: () => access })
  const server = createServer(board.handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    await board[Symbol.asyncDispose]()
    server.close()
    server.closeAllConnections()
    await locks.close({ grace: 0 })
  })
  return { locks, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}
