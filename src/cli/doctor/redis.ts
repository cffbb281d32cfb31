import { randomUUID } from 'node:crypto'
import { openWire, type RedisClient, type Wire } from '../../stores/redis/client.ts'
import { driverOf } from '../../stores/redis/driver.ts'
import { fields } from '../../stores/redis/info.ts'
import { Keys } from '../../stores/redis/keys.ts'
import { clientAt } from '../../stores/redis/open.ts'
import { clockFinding, type Finding, isRefusal, ok, problem, tlsFinding, warning } from './finding.ts'
import { whileOpen } from './while-open.ts'

type Info = Readonly<Record<string, string>>

/** Checks the Redis server of a URL. Rejects if it cannot be reached. `signal` ends the checks. */
export async function checkRedis(url: string, signal: AbortSignal): Promise<Finding[]> {
  const { hostname, protocol } = new URL(url)
  const { client, prefix } = clientAt(url)
  const { findings } = await checkServer(client, hostname, protocol === 'rediss:', prefix, signal)
  return findings
}

/** The findings about one server, and the id of its run, if the user may ask for it. Rejects as `checkRedis`. */
export async function checkServer(
  client: RedisClient,
  host: string,
  isEncrypted: boolean,
  prefix: string | undefined,
  signal: AbortSignal,
): Promise<{ findings: Finding[]; run: string | undefined }> {
  const wire = await openWire(driverOf(client), async () => {}, signal)
  return whileOpen(wire, signal, async () => {
    const info = await infoOf(wire)
    const findings = [tlsFinding(host, isEncrypted), ...(await clock(wire)), ...(await server(info, wire))]
    findings.push(await notifications(wire, new Keys(prefix ?? 'holdfast')))
    return { findings, run: info?.run_id }
  })
}

async function clock(wire: Wire): Promise<Finding[]> {
  const sent = Date.now()
  const time = await unlessRefused(wire.call(['TIME']))
  if (!Array.isArray(time)) return [] // the trial reports what leases need
  return [clockFinding(Number(time[0]) * 1_000 + Number(time[1]) / 1_000, sent, Date.now())]
}

/** Checks notifications. This comes last, because a connection that has subscribed can send no other commands. */
async function notifications(wire: Wire, keys: Keys): Promise<Finding> {
  const id = 'redis-notifications'
  const subscribed = wire.subscribe(keys.channel(`doctor-${randomUUID()}`), () => {}).then(() => 'OK')
  if ((await unlessRefused(subscribed)) !== undefined) return ok(id, 'waiters are notified of a release')
  const why = 'waiters poll, which is slower and costs the server more'
  return warning(
    id,
    'the server refuses SUBSCRIBE to this user',
    why,
    'grant +subscribe, and the channels of the prefix',
  )
}

/** Reads `INFO`. `undefined`: this user may not run it. */
async function infoOf(wire: Wire): Promise<Info | undefined> {
  const answer = await unlessRefused(wire.call(['INFO']))
  return typeof answer === 'string' ? fields(answer) : undefined
}

async function server(info: Info | undefined, wire: Wire): Promise<Finding[]> {
  if (!info) {
    const why = 'version, persistence, eviction and replicas were not checked'
    return [
      warning('redis-info', 'the server refuses INFO to this user', why, 'grant +info, or run doctor as another user'),
    ]
  }
  const [fsync, least] = [await setting(wire, 'appendfsync'), await setting(wire, 'min-replicas-to-write')]
  return settings(info, fsync, least)
}

/** The findings from `INFO` and two settings of a server. A setting may be unknown. */
export function settings(info: Info, fsync: string | undefined, least: string | undefined): Finding[] {
  return [version(info), role(info), eviction(info), persistence(info, fsync), replicas(info, least)]
}

/** Reads a setting. `undefined`: this user may not read it, or the server has no such setting. */
export async function setting(wire: Pick<Wire, 'call'>, name: string): Promise<string | undefined> {
  const config = await unlessRefused(wire.call(['CONFIG', 'GET', name]))
  const [, value] = Array.isArray(config) ? config : []
  return value === undefined ? undefined : String(value)
}

function version({ redis_version: redis = '?', valkey_version: valkey }: Info): Finding {
  const name = valkey ? `Valkey ${valkey}` : `Redis ${redis}`
  const major = Number.parseInt(valkey ?? redis, 10)
  if (major >= (valkey ? 8 : 7) && major <= 8) return ok('version', name)
  const why = 'Holdfast is not tested with it'
  return warning('version', name, why, 'use Redis 7 or 8, or Valkey 8')
}

function role({ role: is }: Info): Finding {
  if (is !== 'slave') return ok('redis-role', 'the server accepts writes')
  const why = 'a replica refuses writes (READONLY), so no lease can be acquired'
  return problem('redis-role', 'the server is a replica', why, 'use the URL of the master')
}

function eviction({ maxmemory = '0', maxmemory_policy: policy = 'noeviction' }: Info): Finding {
  if (policy === 'noeviction') return ok('redis-eviction', 'the server never evicts leases')
  if (maxmemory === '0') return ok('redis-eviction', `maxmemory-policy is ${policy}, but there is no memory limit`)
  const why = 'the server drops leases that are held when its memory is full'
  return problem('redis-eviction', `maxmemory-policy is ${policy}`, why, 'set maxmemory-policy noeviction')
}

function persistence({ aof_enabled: aof, aof_last_write_status: written }: Info, fsync?: string): Finding {
  const id = 'redis-persistence'
  if (aof !== '1') {
    const why = 'a restart forgets leases that are held, so a name can have two holders'
    return warning(id, 'there is no append-only file', why, 'set appendonly yes')
  }
  if (written === 'ok' && fsync === 'no') {
    const why = 'a power loss forgets the grants of the last half minute or so, so a name can have two holders'
    return warning(
      id,
      'the append-only file is not flushed (appendfsync no)',
      why,
      'set appendfsync everysec or always',
    )
  }
  if (written === 'ok') return ok(id, `the server writes an append-only file${fsync ? ` (appendfsync ${fsync})` : ''}`)
  const why = 'the server refuses writes, or forgets them at a restart'
  return problem(id, 'the append-only file cannot be written', why, 'check the disk of the server, and its log')
}

function replicas({ connected_slaves: count = '0', role: is }: Info, least = 'unknown'): Finding {
  const id = 'redis-failover'
  if (count === '0' || is === 'slave') return ok(id, 'the server has no replicas of its own')
  const why = 'replication is asynchronous: a failover can lose a lease, so a name can have two holders'
  const what = `replicas: ${count}, min-replicas-to-write ${least}`
  return warning(id, what, why, 'use fencing tokens or Redlock; min-replicas-to-write 1 narrows the window')
}

/** Resolves to the reply. `undefined`: the server refuses the command. */
async function unlessRefused(reply: Promise<unknown>): Promise<unknown> {
  return reply.catch((error: unknown) => {
    if (!isRefusal(error)) throw error
  })
}
