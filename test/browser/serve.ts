import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Access, dashboard } from '../../src/dashboard/dashboard.ts'
import { createLocks, type Locks } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'

/** A dashboard that is served, and locks over its store, whose leases last 10 minutes. */
export interface Served extends AsyncDisposable {
  readonly locks: Locks
  readonly address: string
}

/** Serves the dashboard of a store. It says that the store is a Redis. */
export async function serve(store: Store, access: Access = 'operate'): Promise<Served> {
  const locks = createLocks(store, { ttl: 600_000, heartbeat: false })
  const board = dashboard(locks, { authorize: () => access, store: 'redis://app:s3cret@cache:6379?tls=1' })
  const server = createServer(board.handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    locks,
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      await board[Symbol.asyncDispose]()
      server.close()
      server.closeAllConnections()
      await locks.close({ grace: 0 })
    },
  }
}
