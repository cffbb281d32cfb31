import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Build } from '../holdfast.ts'
import { HOLDER, keepsNoLeases, type Peer, type Writer } from '../peer.ts'
import { openDatabase } from './holdfast-sqlite.ts'

export const peer: Peer = {
  ...keepsNoLeases,
  label: 'HTTP service, checked in the transaction of its write to SQLite',
  over: 'http',
  async openWriter({ folder }) {
    const build = new Build()
    const { fenceOf, nodeFence } = await build.fencingHttp()
    const { sqliteFence } = await build.fencingSqlite()
    const database = openDatabase(join(folder, 'service.db'))
    database.exec('create table written (times integer); insert into written values (0)')
    const update = database.prepare('update written set times = times + 1')
    const fence = sqliteFence(database)
    fence.install()
    const mayGoOn = nodeFence(null)
    return writerTo(
      async (request, response) => {
        if (request.url === '/plain') update.run()
        else if (await mayGoOn(request, response)) fence.transaction(fenceOf(request), () => update.run())
      },
      async () => database.close(),
    )
  },
}

/** What asks a service in this process to write, at `/plain` and at `/fenced`. */
export async function writerTo(
  service: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>,
  close: () => Promise<unknown>,
): Promise<Writer> {
  const { fenceHeaders } = await new Build().fencingHttp()
  const server = createServer((request, response) => {
    const fail = (): unknown => response.writeHead(500)
    void service(request, response)
      .catch(fail)
      .then(() => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const headers = fenceHeaders(HOLDER)
  const ask = async (path: string, shown: Record<string, string>): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`, { method: 'PUT', headers: shown })
    const text = await response.text()
    if (!response.ok) throw new Error(`${response.status} ${text}`)
  }
  return {
    plain: () => ask('plain', {}),
    fenced: () => ask('fenced', headers),
    async close() {
      server.close()
      server.closeAllConnections()
      await close()
    },
  }
}
