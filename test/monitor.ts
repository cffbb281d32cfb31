import { createClient } from 'redis'
import type { RedisServer } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'

/** A command as the server carried it out. */
interface Seen {
  /** In lower case. */
  readonly command: string
  readonly args: readonly string[]
  readonly inScript: boolean
}

/**
 * What this server carries out from now on, in order. Not by ioredis: there a command of another client may arrive together
 * with the reply to `MONITOR`, and is taken for the reply to something else.
 */
export async function monitor(server: RedisServer): Promise<Monitor> {
  const client = createClient({ url: server.url })
  const seen: Seen[] = []
  await client.connect()
  await client.monitor(line => seen.push(parsed(String(line))))
  return {
    async all() {
      const over = `over ${seen.length}`
      await server.call('ECHO', over)
      const isOver = ({ command, args }: Seen): boolean => command === 'echo' && args[0] === over
      await until('the monitor has seen all', () => seen.some(isOver))
      return seen.slice(0, seen.findIndex(isOver))
    },
    [Symbol.dispose]: () => client.destroy(),
  }
}

export interface Monitor extends Disposable {
  /** All until now. */
  all(): Promise<readonly Seen[]>
}

/** A line such as `1700000000.123456 [0 127.0.0.1:6379] "GET" "key"`, or `[0 lua]`. */
function parsed(line: string): Seen {
  const start = line.indexOf('"')
  const [command = '', ...args] = line
    .slice(start + 1, -1)
    .split('" "')
    .map(value => value.replaceAll('\\"', '"'))
  return { command: command.toLowerCase(), args, inScript: line.slice(0, start).endsWith(' lua] ') }
}
