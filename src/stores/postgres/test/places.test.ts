import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { keptPositions } from '../../wire/test/kept-positions.ts'
import { storeAt } from './support.ts'

let server: PostgresServer
let proxy: TcpProxy

beforeAll(async () => {
  server = await startPostgres({ config: { log_statement: 'all' } })
  proxy = await startProxy(server)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => server.query('drop schema if exists holdfast cascade'))

keptPositions(() => ({
  proxy,
  storeBy: way => storeAt(server.urlBy((way === 'near' ? server : proxy).port)),
  loseFirst: () =>
    server.query('delete from holdfast.lease_line where seq = (select min(seq) from holdfast.lease_line)'),
  free: () => server.query("update holdfast.lease set id = null, ttl = 0, expires_at = now() - interval '500 ms'"),
  async requestsDuring(work) {
    const before = server.output.length
    await work()
    return [...server.output.slice(before).matchAll(/select "holdfast"\."lease_([a-z_]+)_2"\(/g)].map(
      ([, verb = '']) => verb,
    )
  },
}))
