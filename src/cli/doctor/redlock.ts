import { connect, type NodeRecord } from '../../index.ts'
import { serversOf } from '../../stores/redlock/open.ts'
import { messageOf } from '../failure.ts'
import { type Finding, ok, problem, warning } from './finding.ts'
import { checkServer } from './redis.ts'

/** Findings that only matter for a single server. Redlock does not rely on what one server keeps, or on its replicas. */
const OTHERS = new Set(['redis-persistence', 'redis-failover'])

interface Checked {
  readonly name: string
  readonly findings: readonly Finding[]
  /** The id of the server's process. */
  readonly run: string | undefined
}

/** Checks the servers of a Redlock, each by itself and all together. `signal` ends the checks. */
export async function checkRedlock(url: string, signal: AbortSignal): Promise<Finding[]> {
  const servers = await Promise.all(
    serversOf(url).map(async ({ client, prefix, target: { host, port, tls } }): Promise<Checked> => {
      const name = `${host}:${port}`
      try {
        return { name, ...(await checkServer(client, host, tls, prefix, signal)) }
      } catch (error) {
        return { name, run: undefined, findings: [unreachable(error)] }
      }
    }),
  )
  const own = servers.flatMap(({ name, findings }) =>
    findings.filter(({ id }) => !OTHERS.has(id)).map(finding => ({ ...finding, what: `${name}: ${finding.what}` })),
  )
  return [...own, independence(servers), await quarantine(url)]
}

function unreachable(error: unknown): Finding {
  return problem('redlock-server', messageOf(error), 'it has no vote', 'start the server, or correct its address')
}

function independence(servers: readonly Checked[]): Finding {
  const id = 'redlock-servers'
  const same = [...Map.groupBy(servers, ({ run }) => run).entries()].find(([run, { length }]) => run && length > 1)
  const unknown = servers.filter(({ run }) => run === undefined)
  if (!same && unknown.length > 0) {
    const what = `${unknown.map(({ name }) => name).join(' and ')} could not be compared with the other servers`
    return warning(id, what, 'a server named twice has several votes', 'start the server, and grant +info')
  }
  if (!same) return ok(id, `${servers.length} servers, of which none was seen twice`)
  const what = `${same[1].map(({ name }) => name).join(' and ')} are the same server`
  return problem(id, what, 'it has several votes, so its loss can be the loss of a majority', 'name each server once')
}

/** The finding about quarantine: a server that was just started may have forgotten its votes. */
async function quarantine(url: string): Promise<Finding> {
  const id = 'redlock-quarantine'
  await using locks = await connect(url, { lazy: true })
  let nodes: readonly NodeRecord[]
  try {
    nodes = (await locks.inspect('holdfast-doctor')).nodes ?? []
  } catch (error) {
    // The findings about each server say why.
    return problem(id, messageOf(error), 'no lease can be acquired or renewed', 'start the servers that do not answer')
  }
  const waiting = nodes.filter(({ state }) => state !== 'serving')
  if (waiting.length === 0) return ok(id, 'all servers vote')
  const what = waiting.map(({ name, state, reason }) => `${name} is ${state}${reason ? `: ${reason}` : ''}`).join('; ')
  const why = `${nodes.length - waiting.length} of ${nodes.length} servers vote`
  return warning(id, what, why, 'wait for maxTtl after a start, and start one server at a time')
}
