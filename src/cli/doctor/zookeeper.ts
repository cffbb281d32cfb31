import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Connection } from '../../stores/zookeeper/connection.ts'
import { optionsAt } from '../../stores/zookeeper/open.ts'
import { ensembleOf } from '../../stores/zookeeper/options.ts'
import { pathsOf } from '../../stores/zookeeper/paths.ts'
import { closeSession } from '../../stores/zookeeper/protocol.ts'
import { type Ensemble, LONGEST_SESSION } from '../../stores/zookeeper/session.ts'
import { formatDuration } from '../duration.ts'
import { answersOf, type Finding, ok, tlsFinding, warning } from './finding.ts'
import { access } from './zookeeper-access.ts'

type Server = Ensemble['servers'][number]
type Way = Omit<Ensemble, 'servers'>

/** The time limit of each request, in milliseconds. */
const PATIENCE = 2_000

/** The longest answer that is read, in characters. ZooKeeper answers with about 300. */
const LONGEST_ANSWER = 4_096

/** The default ttl, in ms. */
const TTL = 10_000

/** Checks the ZooKeeper servers of a URL. Rejects if none answers. `signal` ends the checks. */
export async function checkZooKeeper(url: string, signal: AbortSignal): Promise<Finding[]> {
  const options = optionsAt(url)
  const ensemble = ensembleOf(options)
  const { servers, ...way } = ensemble
  const nameOf = ({ host, port }: Server): string => `${host}:${port}`
  const asked = await answersOf(servers, nameOf, async server => {
    const shortest = await granted(server, way, 1)
    return { server, shortest, longest: await granted(server, way, LONGEST_SESSION) }
  })
  signal.throwIfAborted()
  const [{ server, shortest, longest }] = asked.answers
  const hosts = servers.map(({ host }) => host)
  return [
    asked.servers,
    tlsFinding(hosts, way.tls !== undefined),
    version(await versionOf(server, way).catch(() => undefined)),
    sessions(shortest, longest),
    await session(server, way, TTL, connection => access(connection, pathsOf(options).root, way.auth?.user)),
  ]
}

/** The session timeout, in ms, that the server grants if `wanted` ms are requested. */
function granted(server: Server, way: Way, wanted: number): Promise<number> {
  return session(server, way, wanted, async ({ timeout }) => timeout)
}

/** Sends a request over a session of its own, for which `wanted` ms are requested. */
async function session<Answer>(
  server: Server,
  way: Way,
  wanted: number,
  ask: (connection: Connection) => Promise<Answer>,
): Promise<Answer> {
  const handshake = { timeout: wanted, id: 0n, password: new Uint8Array(16), lastZxid: 0n }
  const connection = await Connection.open(server, way, handshake, PATIENCE)
  try {
    return await ask(connection)
  } finally {
    await connection.send(closeSession()).catch(() => {})
    connection.end(new Error('done'))
  }
}

/** Reads the version by the command `srvr`, which servers allow by default. */
export async function versionOf({ host, port }: Server, { tls }: Way): Promise<string | undefined> {
  const socket = tls ? connectTls({ ...tls, host, port }) : connectTcp({ host, port })
  socket.setTimeout(PATIENCE, () => socket.destroy(new Error('no answer')))
  socket.write('srvr')
  let answer = ''
  // The version comes first. Another kind of server may send without end.
  for await (const part of socket.setEncoding('utf8')) {
    answer += part
    if (answer.length > LONGEST_ANSWER) break
  }
  return /^Zookeeper version: ([\d.]+)/.exec(answer)?.[1]
}

export function version(is: string | undefined): Finding {
  if (is === undefined) return ok('version', 'the server does not say its version (4lw.commands.whitelist)')
  if (/^3\.[89]\./.test(is)) return ok('version', `ZooKeeper ${is}`)
  return warning('version', `ZooKeeper ${is}`, 'Holdfast is not tested with it', 'use ZooKeeper 3.8 or 3.9')
}

function sessions(shortest: number, longest: number): Finding {
  const id = 'zookeeper-sessions'
  const what = `sessions last from ${formatDuration(shortest)} to ${formatDuration(longest)}`
  if (shortest <= TTL && longest >= TTL) return ok(id, what)
  const why = `a ttl outside of these limits, such as the default of ${formatDuration(TTL)}, is not what the server keeps`
  return warning(id, what, why, 'set tickTime, minSessionTimeout and maxSessionTimeout')
}
