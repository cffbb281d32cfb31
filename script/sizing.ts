// What leases and waiters cost a server: `./script/node script/sizing.ts redis|redis-tls|postgres|etcd [LEASES] [WAITERS]
// [MS]`. It starts a server, holds the leases from one process, then lets the waiters wait for one of them. With MS the round
// trip to the server takes so long, through a proxy of another process. docs/operations/sizing.md has the figures.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setDefaultCACertificates } from 'node:tls'
import { startEtcd } from '../lab/servers/etcd.ts'
import { reservePort } from '../lab/servers/port.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startProxy } from '../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../lab/servers/redis.ts'
import { connect, type Lease, subscribe } from '../src/index.ts'

interface Measured extends AsyncDisposable {
  readonly port: number
  /** With the word PORT. */
  readonly url: string
  /** The memory or disk that the data takes, in bytes. */
  bytes(): Promise<number>
  /** `undefined`: the server does not say. */
  connections(): Promise<number | undefined>
}

/** The connection of this script itself. */
const OWN = 1

/** The leases that are acquired at once. */
const CROWD = 50

const engines: Readonly<Record<string, () => Promise<Measured>>> = {
  async redis() {
    const server = await startRedis()
    return { port: server.port, url: 'redis://127.0.0.1:PORT', ...ofRedis(server) }
  },
  async 'redis-tls'() {
    const { number: port } = await reservePort()
    setDefaultCACertificates([readFileSync(certificate('ca.pem'), 'utf8')])
    const files = { 'tls-cert-file': certificate('server.pem'), 'tls-key-file': certificate('server.key') }
    const server = await startRedis({
      config: { 'tls-port': port, 'tls-ca-cert-file': certificate('ca.pem'), 'tls-auth-clients': 'no', ...files },
    })
    return { port, url: 'rediss://localhost:PORT', ...ofRedis(server) }
  },
  async postgres() {
    const server = await startPostgres()
    const number = async (text: string): Promise<number> => Number((await server.query<{ n: string }>(text))[0]?.n)
    return {
      port: server.port,
      url: `${server.url().replace(`:${server.port}`, ':PORT')}?create=true`,
      bytes: () =>
        number(
          "select sum(pg_total_relation_size(c.oid)) n from pg_class c join pg_namespace s on s.oid = relnamespace where nspname = 'holdfast' and relkind = 'r'",
        ),
      connections: async () =>
        (await number("select count(*) n from pg_stat_activity where backend_type = 'client backend'")) - OWN,
      [Symbol.asyncDispose]: () => server.stop(),
    }
  },
  async etcd() {
    const server = await startEtcd()
    const status = async (): Promise<{ dbSize: string }> =>
      (await server.call('maintenance/status', {})) as { dbSize: string }
    return {
      port: server.port,
      url: 'etcd://127.0.0.1:PORT',
      bytes: async () => Number((await status()).dbSize),
      connections: async () => undefined,
      [Symbol.asyncDispose]: () => server.stop(),
    }
  },
}

function ofRedis(server: RedisServer): Omit<Measured, 'port' | 'url'> {
  const info = async (section: string, field: string): Promise<number> => Number((await server.info(section))[field])
  return {
    bytes: () => info('memory', 'used_memory_dataset'),
    connections: async () => (await info('clients', 'connected_clients')) - OWN,
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

function certificate(file: string): string {
  return join(import.meta.dirname, '../test/certificates', file)
}

const [engine = '', leases = '5000', waiters = '1000', away = '0'] = process.argv.slice(2)
if (engine === 'proxy') {
  const proxy = await startProxy({ host: '127.0.0.1', port: Number(leases) })
  for (const direction of [proxy.up, proxy.down]) direction.delay(Number(away) / 2)
  process.send?.(proxy.port)
  await once(process, 'disconnect')
  process.exit()
}
const start = engines[engine]
if (!start) throw new Error(`unknown engine ${engine}: expected ${Object.keys(engines).join(', ')}`)
await using server = await start()
const proxy = away === '0' ? undefined : fork(import.meta.filename, ['proxy', String(server.port), '', away])
const [port] = proxy ? ((await once(proxy, 'message')) as [number]) : [server.port]
const locks = await connect(server.url.replace('PORT', String(port)), { ttl: 10_000 })
const counted = { renewals: 0, requests: 0, lost: 0 }
subscribe('heartbeat', () => void counted.renewals++)
subscribe('batch_sent', () => void counted.requests++)
subscribe('lease_lost', ({ reason }) => {
  if (counted.lost++ === 0) console.log(`lost: ${reason}`)
})

/** What an interval shows, per second. */
async function shown(what: string, before: number, count: number): Promise<void> {
  const [cpu, at, earlier] = [process.cpuUsage(), performance.now(), { ...counted }]
  await sleep(10_000)
  const seconds = (performance.now() - at) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  console.log(what, {
    'renewals/s': Math.round((counted.renewals - earlier.renewals) / seconds),
    'requests/s': Math.round((counted.requests - earlier.requests) / seconds),
    'client cpu %': Math.round((user + system) / seconds / 1_000) / 10,
    'client rss MB': Math.round(process.memoryUsage.rss() / 2 ** 20),
    'bytes each': Math.round(((await server.bytes()) - before) / count),
    connections: await server.connections(),
    lost: counted.lost,
  })
}

await locks.using('warm-up', async () => {})
const before = await server.bytes()
const kept: Lease[] = [] // what nobody refers to is not renewed
for (let first = 0; first < Number(leases); first += CROWD) {
  const names = Array.from({ length: CROWD }, (_, index) => `sizing:${first + index}`)
  kept.push(...(await Promise.all(names.map(name => locks.acquire(name)))))
}
await shown(`${leases} leases of 10 s`, before, Number(leases))
const held = await server.bytes()
const end = new AbortController()
const waiting = Array.from({ length: Number(waiters) }, () =>
  locks.acquire('sizing:0', { signal: end.signal, wait: Number.POSITIVE_INFINITY }).catch(() => {}),
)
await shown(`and ${waiters} waiters on one of them`, held, Number(waiters))
end.abort()
await Promise.all(waiting)
console.log(`${kept.length} leases were kept`)
await locks.close({ release: true })
proxy?.disconnect()
