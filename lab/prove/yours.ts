import { checkTtl } from '../../src/contract/check.ts'
import { connect } from '../../src/index.ts'
import type { Endpoint, Engine } from '../engine.ts'

/** By scheme; those with TLS are not here, since a certificate is for the host and not for a proxy on this machine. */
const PORTS: Readonly<Record<string, number>> = {
  redis: 6379,
  redlock: 6379,
  postgres: 5432,
  postgresql: 5432,
  etcd: 2379,
  zookeeper: 2181,
}

/**
 * Servers that are somebody's, as they are: nothing is broken but the clients, and the ways to the servers where there
 * is no TLS. What was kept of these names is removed in the end. Rejects as `connect` and `acquire` do if the store does
 * not serve, and `INVALID_ARGUMENT` for a ttl that is too short for it.
 */
export async function yours(url: string, names: readonly string[], ttl: number): Promise<Engine> {
  const locks = await connect(url, { ttl: 5_000 })
  const kind = locks.store.kind
  try {
    checkTtl(ttl, locks.store, '--ttl')
    for (const name of names) await (await locks.tryAcquire(name))?.release()
  } finally {
    await locks.close()
  }
  const parts = partsOf(url)
  return {
    name: kind,
    versions: {},
    bound: { death: 2_000, election: 10_000 },
    endpoints: parts?.hosts.map(({ host, port }) => ({ host: host.replace(/^\[(.*)\]$/, '$1'), port })) ?? [],
    open: ways => ({ url: parts && ways.length > 0 ? through(parts, ways) : url }),
    faults: {},
    isHeldUpByClients: /^sqlite:/i.test(url),
    [Symbol.asyncDispose]: () => forget(url, names),
  }
}

interface Host extends Endpoint {
  /** User and password before it, with the `@`. */
  readonly access: string
}

interface Parts {
  readonly scheme: string
  readonly hosts: readonly Host[]
  readonly rest: string
}

/** `undefined` for a file, and where TLS looks at the name of the host. */
function partsOf(url: string): Parts | undefined {
  const [, scheme = '', hosts = '', rest = ''] = /^([a-z]+):\/\/([^/?#]*)(.*)$/is.exec(url) ?? []
  const usual = PORTS[scheme.toLowerCase()]
  if (usual === undefined || /[?&](tls=true|sslmode=(?!disable))/.test(rest)) return undefined
  const read = (text: string): Host => {
    const [, access = '', host = '', port] = /^(.*@)?(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text) ?? []
    return { access, host: host || 'localhost', port: Number(port ?? usual) }
  }
  return { scheme, hosts: hosts.split(',').map(read), rest }
}

function through({ scheme, hosts, rest }: Parts, ways: readonly Endpoint[]): string {
  const list = hosts.map(({ access }, index) => `${access}${ways[index]?.host}:${ways[index]?.port}`)
  return `${scheme}://${list.join(',')}${rest}`
}

/** A file, etcd and ZooKeeper keep nothing of a name that nobody holds or waits for. */
async function forget(url: string, names: readonly string[]): Promise<void> {
  if (/^rediss?:/i.test(url)) return (await import('../../src/stores/redis/open.ts')).forgetNames(url, names)
  if (/^redlocks?:/i.test(url)) return (await import('../../src/stores/redlock/open.ts')).forgetNames(url, names)
  if (/^postgres(ql)?:/i.test(url)) return (await import('../../src/stores/postgres/open.ts')).forgetNames(url, names)
}
