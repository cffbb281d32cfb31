import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { describe, expect, test } from 'vitest'
import { startEtcd } from '../../../../lab/servers/etcd.ts'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { reservePort } from '../../../../lab/servers/port.ts'
import { startPostgres, unprivileged } from '../../../../lab/servers/postgres.ts'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { startZooKeeper } from '../../../../lab/servers/zookeeper.ts'
import { Stack } from '../../../../test/harnesses/stack.ts'
import { claimOf, failureOf, hold } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { openStore } from '../../../store.ts'
import { postgres } from '../../postgres/index.ts'
import { redis } from '../../redis/index.ts'
import { certificateFor } from './certificate-for.ts'

// MySQL has the same cases, with its fence, in src/stores/mysql/test/client-options.test.ts.

interface Files {
  readonly key: string
  readonly cert: string
}

interface Place {
  readonly host: string
  readonly port: number
  readonly ca: string
  readonly file: string
}

interface Engine {
  start(files: Files, stack: Stack): Promise<number>
  readonly clients: Readonly<Record<string, (place: Place) => Store | Promise<Store>>>
}

const engines: Record<string, Engine> = {
  Redis: {
    async start({ key, cert }, stack) {
      const port = await reservePort()
      stack.defer(() => port.release())
      const files = { 'tls-cert-file': cert, 'tls-key-file': key, 'tls-ca-cert-file': cert }
      stack.use(await startRedis({ config: { ...files, 'tls-port': port.number, 'tls-auth-clients': 'no' } }))
      return port.number
    },
    clients: {
      'ioredis 6': ({ host, port, ca }) => redis(new Redis({ host, port, tls: { ca }, lazyConnect: true })),
      'ioredis 5': ({ host, port, ca }) => redis(new Redis5({ host, port, tls: { ca }, lazyConnect: true })),
      iovalkey: ({ host, port, ca }) => redis(new Valkey({ host, port, tls: { ca }, lazyConnect: true })),
      'node-redis': ({ host, port, ca }) => redis(createClient({ socket: { host, port, tls: true, ca } })),
      'node-redis 4': ({ host, port, ca }) => redis(createClient4({ socket: { host, port, tls: true, ca } })),
    },
  },
  PostgreSQL: {
    async start({ key, cert }, stack) {
      const folder = newFolder('own')
      const user = unprivileged()
      const own = [key, cert].map(file => join(folder, basename(file)))
      for (const [index, path] of own.entries()) {
        writeFileSync(path, readFileSync([key, cert][index] as string), { mode: 0o600 })
        if (user) chownSync(path, user.uid, user.gid)
      }
      if (user) chownSync(folder, user.uid, user.gid)
      const [ssl_key_file = '', ssl_cert_file = ''] = own
      return stack.use(await startPostgres({ config: { ssl: 'on', ssl_key_file, ssl_cert_file } })).port
    },
    clients: {
      'a URL': ({ host, port, file }) =>
        openStore(`postgres://postgres@${host}:${port}/postgres?create=true&sslmode=verify-full&sslrootcert=${file}`),
      'a Pool of pg': ({ ca, ...place }) => postgres(new Pool({ ...at(place), ssl: { ca } }), { create: true }),
      'a Client of pg': ({ ca, ...place }) => postgres(new Client({ ...at(place), ssl: { ca } }), { create: true }),
      'postgres.js': ({ ca, ...place }) => postgres(postgresJs({ ...at(place), ssl: { ca } }), { create: true }),
    },
  },
  etcd: {
    async start({ key, cert }, stack) {
      return stack.use(await startEtcd({ args: [`--key-file=${key}`, `--cert-file=${cert}`] })).port
    },
    clients: { 'a URL': ({ host, port, file }) => openStore(`etcds://${host}:${port}?ca=${file}`) },
  },
  ZooKeeper: {
    async start({ key, cert }, stack) {
      const port = await reservePort()
      stack.defer(() => port.release())
      const keyStore = join(newFolder('keys'), 'server.pem')
      writeFileSync(keyStore, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'))
      const config = {
        serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        secureClientPort: port.number,
        secureClientPortAddress: '127.0.0.1',
        'ssl.keyStore.location': keyStore,
        'ssl.trustStore.location': cert,
        'ssl.clientAuth': 'none',
      }
      stack.use(await startZooKeeper({ config }))
      return port.number
    },
    clients: { 'a URL': ({ host, port, file }) => openStore(`zookeeper://${host}:${port}?tls=true&ca=${file}`) },
  },
}

const at = ({ host, port }: { host: string; port: number }) => ({ host, port, user: 'postgres', database: 'postgres' })

const names = { '127.0.0.1': certificateFor('IP:127.0.0.1'), localhost: certificateFor('DNS:localhost') }

describe.each(Object.entries(engines))('%s', (_, { start, clients }) => {
  test.each(Object.entries(names))('a certificate for %s is accepted there, and nowhere else', async (name, files) => {
    const stack = new Stack()
    try {
      const port = await start(files, stack)
      const ca = readFileSync(files.cert, 'utf8')
      for (const [client, open] of Object.entries(clients)) {
        await using there = await open({ host: name, port, ca, file: files.cert })
        await hold(there, claimOf(client, { ttl: 30_000 }))
        const host = Object.keys(names).find(other => other !== name) as string
        await using elsewhere = await open({ host, port, ca, file: files.cert })
        const { message } = await failureOf(hold(elsewhere, claimOf(client, { ttl: 30_000 })))
        expect([client, message]).toEqual([client, expect.stringMatching(/does not match certificate|certificate of/)])
      }
    } finally {
      await stack.end()
    }
  })
})
