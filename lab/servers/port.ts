import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

// Below the ports of outgoing connections on Linux (32768-60999), so that none of them blocks a server that restarts.
// Redis Cluster's bus is 10,000 above.
const LOWEST = 12_000
const COUNT = 10_000

/** The address of a server. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

export interface Port {
  readonly number: number
  /** Frees the port. */
  release(): Promise<void>
}

/**
 * Reserves a free port of 127.0.0.1, also while the server on it is down. It listens on the same port of 127.0.0.2, which
 * shows other processes that the port is taken.
 */
export async function reservePort(): Promise<Port> {
  for (;;) {
    const number = LOWEST + Math.floor(Math.random() * COUNT)
    const mark = await listen('127.0.0.2', number)
    if (!mark) continue
    const probe = await listen('127.0.0.1', number)
    if (probe) await close(probe)
    mark.unref()
    if (probe) return { number, release: () => close(mark) }
    await close(mark)
  }
}

async function listen(host: string, port: number): Promise<Server | undefined> {
  const server = createServer(socket => socket.destroy()).listen({ host, port, exclusive: true })
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    throw error
  }
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  server.close()
  await once(server, 'close')
}
