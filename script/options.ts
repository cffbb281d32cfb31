import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { between, type Member, membersIn } from './members.ts'
import { table } from './proof/page.ts'

const ROOT = join(import.meta.dirname, '..')

/** A public interface of options, and where users meet it. */
type Listed = readonly [title: string, path: string, name: string]

const LISTED: readonly Listed[] = [
  ['All leases', 'src/core/options.ts', 'LeaseOptions'],
  ['`tryAcquire`, in addition', 'src/core/options.ts', 'TryOptions'],
  ['`acquire` and `using`, in addition', 'src/core/options.ts', 'AcquireOptions'],
  ['`locks.semaphore`', 'src/recipes/sharing/sharing.ts', 'SemaphoreOptions'],
  [
    '`acquire`, `tryAcquire` and `using` of a semaphore, in addition',
    'src/recipes/sharing/sharing.ts',
    'PermitOptions',
  ],
  ['`locks.close`', 'src/core/options.ts', 'CloseOptions'],
  ['`lead` and `election`, in addition to those of leases', 'src/recipes/campaign.ts', 'CampaignOptions'],
  ['`election`, in addition', 'src/recipes/election.ts', 'ElectionOptions'],
  ['`lead`, in addition', 'src/recipes/lead.ts', 'LeadOptions'],
  ['`election.observe`', 'src/recipes/observe.ts', 'ObserveOptions'],
  ['Every store', 'src/stores/shared/shortest-ttl.ts', 'ShortestTtl'],
  ['`sqlite`', 'src/stores/sqlite/index.ts', 'SqliteOptions'],
  ['`memory`', 'src/stores/memory/index.ts', 'MemoryOptions'],
  ['`redis`', 'src/stores/redis/index.ts', 'RedisOptions'],
  ['`redlock`', 'src/stores/redlock/index.ts', 'RedlockOptions'],
  ['`postgres` and `advisory`: tables', 'src/stores/postgres/names.ts', 'Place'],
  ['`postgres`', 'src/stores/postgres/index.ts', 'PostgresOptions'],
  ['`advisory`', 'src/stores/postgres/index.ts', 'AdvisoryOptions'],
  ['`mysql`: tables', 'src/stores/mysql/schema.ts', 'Place'],
  ['`mysql`', 'src/stores/mysql/index.ts', 'MysqlOptions'],
  ['`etcd`', 'src/stores/etcd/options.ts', 'EtcdOptions'],
  ['`zookeeper`', 'src/stores/zookeeper/options.ts', 'ZooKeeperOptions'],
  ['Every fence', 'src/fencing/fence.ts', 'FenceOptions'],
  ['`postgresFence`', 'src/fencing/postgres/index.ts', 'PostgresFenceOptions'],
  ['`mysqlFence`', 'src/fencing/mysql/index.ts', 'MysqlFenceOptions'],
  ['`sqliteFence`', 'src/fencing/sqlite/index.ts', 'SqliteFenceOptions'],
  ['`redisFence`', 'src/fencing/redis/index.ts', 'RedisFenceOptions'],
  ['`fencedWrite` and `fileMarks`', 'src/fencing/files/place.ts', 'FileFenceOptions'],
  ['`objectFence`', 'src/fencing/objects/object-fence.ts', 'ObjectFenceOptions'],
  ['`leaseMetrics`', 'src/observe/prometheus.ts', 'LeaseMetricsOptions'],
  ['`leaseTelemetry`', 'src/observe/otel.ts', 'LeaseTelemetryOptions'],
]

/** docs/reference/options.md, with a table for each interface of options, from its doc comments. */
export function optionsPage(page: string): string {
  const sections = LISTED.flatMap(([title, path, name]) => {
    const members = membersOf(path, name)
    if (members.length === 0) return []
    const rows = members.map(({ name, type, text, default: fallback }) => [`\`${name}\``, type, text, fallback])
    return [`## ${title}\n\n${table(['option', 'type', 'meaning', 'default'], rows)}`]
  })
  return between(page, 'options', sections.join('\n\n'))
}

/** Throws if a member has no doc comment. */
function membersOf(path: string, name: string): Member[] {
  const source = readFileSync(join(ROOT, path), 'utf8')
  const [, body] = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source) ?? []
  if (body === undefined) throw new Error(`${path} has no interface ${name}`)
  return membersIn(body, 2, `${path}: ${name}`)
}
