import { connect, createServer, type Socket } from 'node:net'
import postgresJs from 'postgres'
import { expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

test('a connection of postgres.js that is reset during a statement carries no more of that work', async () => {
  await using server = await startPostgres()
  const sockets: Socket[] = []
  const relay = createServer(socket => {
    sockets.push(socket)
    const onward = connect(server.port, server.host)
    for (const side of [socket, onward]) side.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  await new Promise<void>(resolve => relay.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void relay.close())
  const { port } = relay.address() as { port: number }
  const sql = postgresJs({ host: '127.0.0.1', port, user: 'postgres', max: 1, backoff: () => 0, onnotice: () => {} })
  onTestFinished(() => sql.end({ timeout: 1 }))
  const fence = postgresFence(sql)
  await fence.install()
  await sql`create table entry (line text)`
  const after = Promise.withResolvers<Error>()
  const outcome = failureOf(
    fence.transaction(holder('reset', 5), async transaction => {
      await transaction`select pg_sleep(60)`.catch(() => {})
      after.resolve(await failureOf((async () => transaction`insert into entry values ('after')`)()))
    }),
  )
  const isAsleep = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
  await until('it sleeps', async () => (await server.query(isAsleep)).length > 0)
  for (const socket of sockets) socket.resetAndDestroy()
  expect(await outcome).toBeInstanceOf(Error)
  expect(await after.promise).toMatchObject({ message: expect.stringMatching(/was not sent/) })
  await until('it is open again', () =>
    sql`select 1`.then(
      () => true,
      () => false,
    ),
  )
  expect(await sql`select from entry`).toHaveLength(0)
})
