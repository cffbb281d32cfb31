import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { between, type Member, membersIn } from './members.ts'

const ROOT = join(import.meta.dirname, '..')

/** A public interface of options, and where users meet it. */
type Listed = readonly [title: string, path: string, name: string]

const LISTED: readonly Listed[] = [
  ['All leases', 'src/core/options.ts', 'LeaseOptions'],
  ['`tryAcquire`, in addition', 'src/core/options.ts', 'TryOptions'],
  ['`acquire` and `using`, in addition', 'src/core/options.ts', 'AcquireOptions'],
  ['`once`, in addition', 'src/core/options.ts', 'OnceOptions'],
  ['`locks.semaphore`', 'src/sharing/sharing.ts', 'SemaphoreOptions'],
  ['`acquire`, `tryAcquire` and `using` of a semaphore, in addition', 'src/sharing/sharing.ts', 'PermitOptions'],
  ['`locks.break`', 'src/core/options.ts', 'BreakOptions'],
  ['`connect`, in addition to those of `acquire`', 'src/connect.ts', 'ConnectOptions'],
  ['`locks.ping`', 'src/core/options.ts', 'PingOptions'],
  ['`locks.close`', 'src/core/options.ts', 'CloseOptions'],
  ['`lead` and `election`, in addition to those of leases', 'src/leadership/campaign.ts', 'CampaignOptions'],
  ['`election`, in addition', 'src/leadership/election.ts', 'ElectionOptions'],
  ['`election.run`', 'src/leadership/campaign.ts', 'RunOptions'],
  ['`lead`, in addition', 'src/leadership/lead.ts', 'LeadOptions'],
  ['`election.observe`', 'src/leadership/observe.ts', 'ObserveOptions'],
  ['Every store', 'src/stores/url/min-ttl.ts', 'MinTtl'],
  ['`sqlite`', 'src/stores/sqlite/index.ts', 'SqliteOptions'],
  ['`sqlite`, `fileFence` and `fileMarks`', 'src/stores/sqlite/path.ts', 'SharedFolder'],
  ['`memory`', 'src/stores/memory/index.ts', 'MemoryOptions'],
  ['`redis`', 'src/stores/redis/index.ts', 'RedisOptions'],
  ['`redlock`', 'src/stores/redlock/index.ts', 'RedlockOptions'],
  ['`postgres` and `advisory`: tables', 'src/stores/postgres/names.ts', 'Tables'],
  ['`postgres`', 'src/stores/postgres/index.ts', 'PostgresOptions'],
  ['`advisory`', 'src/stores/postgres/index.ts', 'AdvisoryOptions'],
  ['`mysql`: tables', 'src/stores/mysql/schema.ts', 'Tables'],
  ['`mysql`', 'src/stores/mysql/index.ts', 'MysqlOptions'],
  ['`etcd`', 'src/stores/etcd/options.ts', 'EtcdOptions'],
  ['`zookeeper`', 'src/stores/zookeeper/options.ts', 'ZooKeeperOptions'],
  ...registers(),
  ['`migrate` of `holdfast/nats`', 'src/stores/nats/migrate.ts', 'Creation'],
  ['Every fence', 'src/fencing/fence.ts', 'FenceOptions'],
  ['Each call of a fence, and `inTurn`', 'src/fencing/fence.ts', 'FenceCallOptions'],
  ['`postgresFence`', 'src/fencing/postgres/index.ts', 'PostgresFenceOptions'],
  ['`mysqlFence`', 'src/fencing/mysql/index.ts', 'MysqlFenceOptions'],
  ['`sqliteFence`', 'src/fencing/sqlite/index.ts', 'SqliteFenceOptions'],
  ['`redisFence`', 'src/fencing/redis/index.ts', 'RedisFenceOptions'],
  ['`set` of `redisFence`', 'src/fencing/redis/index.ts', 'FenceSetOptions'],
  ['`fileFence`', 'src/fencing/files/place.ts', 'FileFenceOptions'],
  ['`objectFence`', 'src/fencing/objects/object-fence.ts', 'ObjectFenceOptions'],
  ['`httpObjects`', 'src/fencing/objects/http.ts', 'HttpObjectsOptions'],
  ['`checkFence`', 'src/fencing/http/check.ts', 'CheckOptions'],
  [
    '`expressFence`, `fastifyFence`, `honoFence` and `nodeFence`, in addition to `required`',
    'src/fencing/http/middleware.ts',
    'MiddlewareOptions',
  ],
  ['`memoryMarks`', 'src/fencing/http/memory-marks.ts', 'MemoryMarksOptions'],
  ['`migrate`', 'src/migrate.ts', 'MigrateOptions'],
  ['`testFence`', 'src/testing/fence.ts', 'TestFenceOptions'],
  ['`leaseMetrics`', 'src/observe/prometheus.ts', 'LeaseMetricsOptions'],
  ['`leaseTelemetry`', 'src/observe/otel.ts', 'LeaseTelemetryOptions'],
  ['`@LeaseCron` of Nest', 'src/integrations/nestjs/lease-cron.ts', 'LeaseCronOptions'],
]

/** The options of each store over a register, in whatever file they stand: those of the first function of its index. */
function registers(): Listed[] {
  const paths = globSync('src/stores/*/*.ts', { cwd: ROOT }).toSorted()
  const sources = paths.map(path => {
    return { path, folder: dirname(path), source: readFileSync(join(ROOT, path), 'utf8') }
  })
  const users = sources.filter(({ source }) => source.includes("from '../cas/index.ts'"))
  return ['src/stores/cas', ...new Set(users.map(({ folder }) => folder))].map((folder): Listed => {
    const files = sources.filter(file => file.folder === folder)
    const index = files.find(({ path }) => path.endsWith('/index.ts'))
    const [, verb, name = ''] = /^export function (\w+).*\boptions: (\w+)/m.exec(index?.source ?? '') ?? []
    const file = files.find(({ source }) => source.includes(`export interface ${name} `))
    return [`\`${verb}\``, file?.path ?? folder, name]
  })
}

/** From here on the options of one store, fence or integration: their first sentence is enough to choose, and its page says more. */
const BRIEF_FROM = 'Every store'

/** Types that a default shows. */
const SIMPLE: ReadonlySet<string> = new Set(['`number`', '`string`', '`boolean`'])

/** Public all the same, and described where they are used: an error that you make, and what consists of functions. */
const ELSEWHERE = ['LeaseErrorOptions', 'DashboardOptions', 'LeaseModuleOptions', 'LeaseModuleAsyncOptions']

/** The interfaces and types of options that the package exports. */
function exported(): string[] {
  const api = readFileSync(join(ROOT, 'test/public-api.txt'), 'utf8')
  return Array.from(api.matchAll(/^ {2}(?:interface|type) (\w+Options)\b/gm), ([, name = '']) => name)
}

/** docs/reference/options.md, with a list for each interface of options, from its doc comments. */
export function optionsPage(page: string): string {
  const known = new Set([...ELSEWHERE, ...LISTED.map(([, , name]) => name)])
  const missing = exported().filter(name => !known.has(name))
  if (missing.length > 0) throw new Error(`script/options.ts does not list ${missing.join(', ')}`)
  const sections = LISTED.flatMap(([title, path, name], index) => {
    const members = membersOf(path, name)
    if (members.length === 0) return []
    const isBrief = LISTED.findIndex(([other]) => other === BRIEF_FROM) <= index
    return [`## ${title}\n\n${members.map(member => line(member, isBrief)).join('\n')}`]
  })
  return between(page, 'options', sections.join('\n\n'))
}

function line({ name, type, text, default: fallback }: Member, isBrief: boolean): string {
  const shown = fallback === "''" ? 'empty' : fallback
  const kind = SIMPLE.has(type) && fallback !== 'none' ? [] : [type]
  const facts = [...kind, ...(fallback === 'required' ? [fallback] : fallback === 'none' ? [] : [`default ${shown}`])]
  return `- \`${name}\` (${facts.join(', ')})${text ? `: ${isBrief ? firstSentence(text) : text}` : ''}`
}

function firstSentence(text: string): string {
  return /^.*?[.?](?= [A-Z`0-9]|$)/s.exec(text)?.[0] ?? text
}

/** Throws if a member has no doc comment. */
function membersOf(path: string, name: string): Member[] {
  const source = readFileSync(join(ROOT, path), 'utf8')
  const [, body] = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source) ?? []
  if (body === undefined) throw new Error(`${path} has no interface ${name}`)
  return membersIn(body, 2, `${path}: ${name}`)
}
