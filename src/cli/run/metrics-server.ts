import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT, Failure } from '../failure.ts'
import type { Address } from './metrics-options.ts'

/** Milliseconds that a holder before this one, on this machine, may take to let go of the port. */
const PATIENCE = 1_000

const LOOPBACK = /^(127(\.\d+){3}|\[?::1\]?|(.+\.)?localhost\.?)$/i

/**
 * Answers `GET /metrics`. Resolves to a function that stops it; rejects with a `Failure`. A server on a loopback address
 * answers only requests for a loopback host, so a web page whose DNS name changes to 127.0.0.1 cannot read the metrics.
 */
export async function serveMetrics(at: Address, contentType: string, read: () => string): Promise<() => void> {
  const server = createServer(({ method, url = '', headers }, response) => {
    if (isLocal && !LOOPBACK.test((headers.host ?? 'localhost').replace(/:\d*$/, ''))) {
      response.writeHead(421, { 'content-type': 'text/plain' }).end('This host is not served here: use localhost\n')
      return
    }
    const isFound = /^\/metrics(\?|$)/.test(url)
    const isKnown = method === 'GET' || method === 'HEAD'
    response.statusCode = isFound ? (isKnown ? 200 : 405) : 404
    response.setHeader('content-type', isFound && isKnown ? contentType : 'text/plain')
    response.end(isFound && isKnown ? read() : 'GET /metrics\n')
  })
  server.unref()
  await listen(server, at)
  const isLocal = LOOPBACK.test((server.address() as AddressInfo).address)
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

async function listen(server: Server, { host, port }: Address): Promise<void> {
  for (const giveUp = performance.now() + PATIENCE; ; await sleep(50)) {
    try {
      server.listen(port, host)
      await once(server, 'listening')
      return
    } catch (error) {
      const { code = 'UNKNOWN', message } = error as NodeJS.ErrnoException
      if (code === 'EADDRINUSE' && performance.now() < giveUp) continue
      throw new Failure(EXIT.unavailable, code, `--metrics-port: ${why(code, host, port) ?? message}`)
    }
  }
}

function why(code: string, host: string, port: number): string | undefined {
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is in use: choose another, or leave the option out`
  if (code === 'EACCES') return `port ${port} is not allowed to this user: choose one above 1023`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is no address of this machine`
  return undefined
}
