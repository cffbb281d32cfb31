import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT, Failure } from '../failure.ts'
import type { Address } from './metrics-options.ts'

/** Others are closed at once: without a limit, they could take the file descriptors that the store needs. */
const MOST_CONNECTIONS = 100

/** Milliseconds that the previous holder on this machine may take to close the port. */
const PORT_TIMEOUT = 1_000

const LOOPBACK = /^(127(\.\d+){3}|\[?::1\]?|(.+\.)?localhost\.?)$/i

/**
 * Serves `GET /metrics`. Resolves to a function that stops the server. Rejects with a `Failure`. A server on a loopback
 * address accepts only loopback hosts, so a web page cannot read the metrics by DNS rebinding.
 */
export async function serveMetrics(address: Address, contentType: string, read: () => string): Promise<() => void> {
  const server = createServer(({ method, url = '', headers }, response) => {
    if (isLocal && !LOOPBACK.test((headers.host ?? 'localhost').replace(/:\d*$/, ''))) {
      response.writeHead(421, { 'content-type': 'text/plain' }).end('Unknown host: use localhost\n')
      return
    }
    const isFound = /^\/metrics(\?|$)/.test(url)
    const isKnown = method === 'GET' || method === 'HEAD'
    response.statusCode = isFound ? (isKnown ? 200 : 405) : 404
    response.setHeader('content-type', isFound && isKnown ? contentType : 'text/plain')
    response.end(isFound && isKnown ? read() : 'GET /metrics\n')
  })
  server.maxConnections = MOST_CONNECTIONS
  server.unref()
  await listen(server, address)
  const isLocal = LOOPBACK.test((server.address() as AddressInfo).address)
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

async function listen(server: Server, { host, port }: Address): Promise<void> {
  for (const deadline = performance.now() + PORT_TIMEOUT; ; await sleep(50)) {
    try {
      server.listen(port, host)
      await once(server, 'listening')
      return
    } catch (error) {
      const { code = 'UNKNOWN', message } = error as NodeJS.ErrnoException
      if (code === 'EADDRINUSE' && performance.now() < deadline) continue
      throw new Failure(EXIT.unavailable, code, `--metrics-port: ${why(code, host, port) ?? message}`)
    }
  }
}

function why(code: string, host: string, port: number): string | undefined {
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is in use: choose another port, or remove the option`
  if (code === 'EACCES') return `this user may not open port ${port}: choose one above 1023`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is not an address of this machine`
  return undefined
}
