import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newFolder } from '../../lab/servers/folder.ts'
import { guarantees } from '../../src/stores/sqlite/guarantees.ts'
import { sqlite } from '../../src/stores/sqlite/index.ts'
import { lacksBy, type StoreHarness } from './harness.ts'

/** One file, with a connection for each client. */
export function sqliteHarness(): StoreHarness {
  const path = join(newFolder('sqlite'), 'leases.db')
  const noServer = 'a file has no server'
  return {
    name: 'sqlite',
    store: 'sqlite',
    open: async () => sqlite(path),
    faults: {
      // Like a process that is paused inside a transaction.
      async pause() {
        const stopped = new DatabaseSync(path)
        stopped.exec('pragma busy_timeout = 5000; begin immediate')
        return async () => stopped.close()
      },
    },
    lacks: {
      ...lacksBy(guarantees),
      cut: noServer,
      delay: noServer,
      stop: noServer,
      jump: "its clock is the machine's, whose jumps the core sees as well",
    },
    end: async () => {},
  }
}
