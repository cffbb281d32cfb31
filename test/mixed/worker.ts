// A process with one version of Holdfast: `node worker.ts FOLDER URL`, where the sources are in FOLDER/src. It acquires and
// releases as its parent asks, and answers with what happened.
import { join } from 'node:path'
import { Pool } from 'pg'
import type * as holdfast from '../../src/index.ts'
import type { advisory } from '../../src/stores/postgres/index.ts'

export interface Asked {
  readonly number: number
  readonly verb: 'acquire' | 'try' | 'release'
  readonly name: string
  /** Which lease of this process. */
  readonly id: string
  /** A permit of a semaphore with this limit. */
  readonly limit?: number | undefined
}

export interface Answered {
  readonly number: number
  readonly token?: string
  readonly slot?: number | undefined
  readonly ended?: string
  readonly code?: string
  readonly message?: string
}

/** Milliseconds. ZooKeeper has no shorter sessions. */
const TTL = 4_000

const [folder = '', url = ''] = process.argv.slice(2)
const load = (file: string): Promise<unknown> => import(join(folder, 'src', file))
const { connect, createLocks } = (await load('index.ts')) as typeof holdfast
const locks = await open()
const leases = new Map<string, holdfast.Lease>()

async function open(): Promise<holdfast.Locks> {
  if (!url.startsWith('advisory:')) return connect(url, { ttl: TTL, timeout: 20_000 })
  const postgres = (await load('stores/postgres/index.ts')) as { advisory: typeof advisory }
  const client = new Pool({ connectionString: url.replace('advisory:', '') })
  return createLocks(postgres.advisory(client, { create: true, ttl: TTL }), { ttl: TTL })
}

async function carryOut({ verb, name, id, limit }: Asked): Promise<Omit<Answered, 'number'>> {
  if (verb === 'release') return { ended: (await leases.get(id)?.release()) ?? 'unknown id' }
  const wait = verb === 'try' ? 0 : 60_000
  const lease =
    limit === undefined ? await locks.acquire(name, { wait }) : await locks.semaphore(name, { limit }).acquire({ wait })
  leases.set(id, lease)
  return { token: String(lease.token), slot: 'slot' in lease ? Number(lease.slot) : undefined }
}

process.on('message', async (asked: Asked) => {
  const failed = ({ code, message }: { code?: string; message: string }): object => ({ code: code ?? 'none', message })
  process.send?.({ number: asked.number, ...(await carryOut(asked).catch(failed)) })
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
