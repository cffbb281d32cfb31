import { join } from 'node:path'
import type { Store } from '../src/contract/store.ts'
import type * as Dashboard from '../src/dashboard/dashboard.ts'
import type * as FencingFiles from '../src/fencing/files/index.ts'
import type * as FencingHttp from '../src/fencing/http/index.ts'
import type * as FencingObjects from '../src/fencing/objects/index.ts'
import type * as FencingPostgres from '../src/fencing/postgres/index.ts'
import type * as FencingRedis from '../src/fencing/redis/index.ts'
import type * as FencingSqlite from '../src/fencing/sqlite/index.ts'
import type * as Main from '../src/index.ts'
import type * as Prometheus from '../src/observe/prometheus.ts'
import type * as Etcd from '../src/stores/etcd/index.ts'
import type * as Memory from '../src/stores/memory/index.ts'
import type * as Postgres from '../src/stores/postgres/index.ts'
import type * as Redis from '../src/stores/redis/index.ts'
import type * as Redlock from '../src/stores/redlock/index.ts'
import type * as Sqlite from '../src/stores/sqlite/index.ts'
import type * as ZooKeeper from '../src/stores/zookeeper/index.ts'
import type { Client } from './peer.ts'

/** What `npm run build` makes, in a folder of its own: that is what users run. */
export const BUILD: string = join(import.meta.dirname, 'dist')

/** A build of Holdfast. */
export class Build {
  readonly #folder: string
  readonly #copy: string

  /** `copy`: what comes after the paths of its modules, such as `?silent`; see `Copies`. */
  constructor(folder: string = BUILD, copy = '') {
    this.#folder = folder
    this.#copy = copy
  }

  main(): Promise<typeof Main> {
    return this.#load('index')
  }

  redis(): Promise<typeof Redis> {
    return this.#load('redis')
  }

  redlock(): Promise<typeof Redlock> {
    return this.#load('redlock')
  }

  memory(): Promise<typeof Memory> {
    return this.#load('memory')
  }

  postgres(): Promise<typeof Postgres> {
    return this.#load('postgres')
  }

  etcd(): Promise<typeof Etcd> {
    return this.#load('etcd')
  }

  sqlite(): Promise<typeof Sqlite> {
    return this.#load('sqlite')
  }

  zookeeper(): Promise<typeof ZooKeeper> {
    return this.#load('zookeeper')
  }

  prometheus(): Promise<typeof Prometheus> {
    return this.#load('prometheus')
  }

  dashboard(): Promise<typeof Dashboard> {
    return this.#load('dashboard')
  }

  fencingFiles(): Promise<typeof FencingFiles> {
    return this.#load('fencing/files')
  }

  fencingHttp(): Promise<typeof FencingHttp> {
    return this.#load('fencing/http')
  }

  fencingObjects(): Promise<typeof FencingObjects> {
    return this.#load('fencing/objects')
  }

  fencingPostgres(): Promise<typeof FencingPostgres> {
    return this.#load('fencing/postgres')
  }

  fencingRedis(): Promise<typeof FencingRedis> {
    return this.#load('fencing/redis')
  }

  fencingSqlite(): Promise<typeof FencingSqlite> {
    return this.#load('fencing/sqlite')
  }

  /** Holdfast over any store, with its defaults: every lease has a heartbeat and a deadline that is watched. */
  async client(store: Store, close: () => unknown = () => {}): Promise<Client> {
    const { createLocks } = await this.main()
    const locks = createLocks(store)
    return {
      async acquire(name, ttl) {
        const lease = await locks.acquire(name, { ttl })
        return () => lease.release()
      },
      async hold(name, ttl, onLost) {
        const lease = await locks.acquire(name, { ttl })
        lease.signal.addEventListener('abort', onLost, { once: true })
        return { release: () => lease.release(), isHeld: () => lease.remaining > 0 }
      },
      election: name => locks.election(name),
      async permit(name, limit, ttl) {
        const permit = await locks.semaphore(name, { limit }).acquire({ ttl })
        return () => permit.release()
      },
      async both(names, ttl) {
        const set = await locks.all(names).acquire({ ttl })
        return () => set.release()
      },
      async close() {
        await locks.close({ grace: 0 })
        await close()
      },
    }
  }

  async #load<Module>(name: string): Promise<Module> {
    return (await import(join(this.#folder, `${name}.js${this.#copy}`))) as Module
  }
}
