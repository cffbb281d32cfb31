import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dashboard } from '../../dashboard/dashboard.ts'
import { EXIT, Failure, Usage } from '../failure.ts'
import { Signals } from '../signals.ts'
import { query } from './query.ts'
import { Session } from './session.ts'

const OPTIONS = { port: { type: 'string' }, 'read-only': { type: 'boolean' } } as const

/** `holdfast dashboard`: serves the page on this machine, until a signal ends it. */
export function serveDashboard(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async ({ argument, url, locks, output, values }) => {
    if (argument !== '') throw new Usage(`holdfast dashboard takes options only, not ${argument}`)
    const port = portOf(values.port as string | undefined)
    const session = new Session()
    const access = values['read-only'] === true ? 'read' : 'operate'
    await using board = dashboard(locks, {
      store: url,
      authorize: ({ request }) => (session.admits(request) ? access : 'none'),
    })
    const server = createServer((request, response) => {
      // Another host name that leads here is DNS rebinding: a foreign page that pretends to have the same origin.
      if (!hosts.has(request.headers.host ?? ''))
        return void response.writeHead(421, { 'content-type': 'text/plain' }).end('Unknown host: use 127.0.0.1\n')
      const cookie = session.cookieFor(request.url)
      if (cookie !== undefined) response.setHeader('set-cookie', cookie)
      board.handler(request, response)
    })
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    } catch (error) {
      const { code = 'UNKNOWN', message } = error as NodeJS.ErrnoException
      throw new Failure(EXIT.unavailable, code, `--port ${port}: ${message}`)
    }
    const { port: bound } = server.address() as AddressInfo
    const hosts = new Set([`127.0.0.1:${bound}`, `localhost:${bound}`])
    const address = `http://127.0.0.1:${bound}${session.entrance}`
    const { stop } = new Signals('while it served the dashboard')
    output.print({ address }, `${address}\nIt is valid while this command runs. Stop it with Ctrl-C.`, true)
    if (!stop.aborted) await once(stop, 'abort')
    server.close()
    server.closeAllConnections()
    return 0
  }
  return query('dashboard', 'PREFIX', args, answer, OPTIONS)
}

function portOf(value: string | undefined): number {
  if (value === undefined) return 0
  const port = Number(value)
  if (/^\d{1,5}$/.test(value) && port <= 65_535) return port
  throw new Usage(`--port ${value} is not a port: expected a number from 0 to 65535`)
}
