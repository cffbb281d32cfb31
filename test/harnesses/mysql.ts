import { createPool, type Pool } from 'mysql2'
import { startClock } from '../../lab/servers/clock.ts'
import { startMariaDb } from '../../lab/servers/mariadb.ts'
import { guarantees } from '../../src/stores/mysql/guarantees.ts'
import { mysql } from '../../src/stores/mysql/index.ts'
import { deaths, jumps, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'
import type { Stack } from './stack.ts'

/** Debian's MariaDB, over a pool of mysql2. */
export function mysqlHarness(): StoreHarness {
  const poolAt = (uri: string, stack: Stack): Pool => stack.adopt(createPool({ uri }), async pool => pool.end(() => {}))
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startMariaDb({ clock }))
    return { servers: [server] as const, clock, client: poolAt(server.url(), stack) }
  })
  return {
    name: 'mysql',
    store: 'mysql',
    open: async () => mysql((await started.value).client, { create: true }),
    faults: {
      ...network(started, ([port], stack, { servers: [server] }) =>
        mysql(poolAt(server.urlBy(port), stack), { create: true }),
      ),
      ...deaths(started),
      ...jumps(started),
    },
    lacks: {
      ...lacksBy(guarantees),
      watch: 'the server notifies nobody',
    },
    end: () => started.end(),
  }
}
