import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

// Below Linux' range for outgoing connections (32768-60999), so that no client's own port is in the way when a server
// comes back; Redis Cluster's bus is 10,000 above.
const LOWEST = 12_000
const COUNT = 10_000

export interface Port {
  readonly number: number
  /** Lets others have it. */
  release(): Promise<void>
}

/**
 * A free port of 127.0.0.1 that stays ours, also while the server on it is down: it is marked for the test processes
 * beside this one by listening on the same port of 127.0.0.2.
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
