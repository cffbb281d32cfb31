import { connect, LeaseError } from '../../src/index.ts'
import type { Endpoint } from '../servers/port.ts'
import type { Engine } from './engine.ts'

/** Default ports by scheme. No scheme has TLS: a certificate is for the host, not for a proxy on this machine. */
const PORTS: Readonly<Record<string, number>> = {
  redis: 6379,
  redlock: 6379,
  postgres: 5432,
  postgresql: 5432,
  mysql: 3306,
  mariadb: 3306,
  etcd: 2379,
  zookeeper: 2181,
}

export interface ExternalOptions {
  readonly names: readonly string[]
  readonly ttl: number
  /** Removes what the store keeps of the names. */
  forget(url: string, names: readonly string[]): Promise<void>
}

/**
 * Servers that the lab did not start. Faults hit only the clients, and their connections unless these use TLS. Rejects
 * as `connect` and `acquire` do if the store does not serve, and with `INVALID_ARGUMENT` for a ttl that is too short for it.
 */
export async function externalServers(url: string, { names, ttl, forget }: ExternalOptions): Promise<Engine> {
  const locks = await connect(url, { ttl: 5_000, lazy: true })
  const { kind, guarantees } = locks.store
  try {
    if (ttl < guarantees.minTtl)
      throw new LeaseError(
        'INVALID_ARGUMENT',
        `--ttl is ${ttl} ms; ${kind} needs at least ${guarantees.minTtl}. Durations are milliseconds`,
      )
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
    open: proxies => ({ url: parts && proxies.length > 0 ? through(parts, proxies) : url }),
    faults: {},
    endsWithConnection: kind.includes('advisory'),
    lacksReaders: guarantees.sharing !== 'slots',
    clientsBlockOthers: /^sqlite:/i.test(url),
    [Symbol.asyncDispose]: () => forget(url, names),
  }
}

interface Host extends Endpoint {
  /** User and password, with the `@`. */
  readonly access: string
}

interface Parts {
  readonly scheme: string
  readonly hosts: readonly Host[]
  readonly rest: string
}

/** `undefined` for a file, and where TLS checks the name of the host. */
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

function through({ scheme, hosts, rest }: Parts, proxies: readonly Endpoint[]): string {
  const list = hosts.map(({ access }, index) => `${access}${proxies[index]?.host}:${proxies[index]?.port}`)
  return `${scheme}://${list.join(',')}${rest}`
}
