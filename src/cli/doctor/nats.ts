import { isSupported, type NatsKvm } from '../../stores/nats/client.ts'
import { targetOf, whileOpen } from '../../stores/nats/open.ts'
import { type Finding, ok, problem, tlsFinding, warning } from './finding.ts'

/**
 * Checks the bucket of a URL, and the server that answers. Rejects if none does, or if the bucket is missing. `signal` ends
 * the checks.
 */
export async function checkNats(url: string, signal: AbortSignal): Promise<Finding[]> {
  const { hosts, isTls } = targetOf(url)
  const find = async (kvm: NatsKvm, bucket: string): Promise<Finding[]> => {
    const kv = await kvm.open(bucket, { allow_direct: false })
    const { storage, num_replicas: replicas = 1 } = (await kv.status()).streamInfo.config
    const info = kvm.js.nc.info
    return [
      tlsFinding(hosts, isTls),
      version(info?.version),
      storageFinding(storage),
      replication(replicas, info?.cluster !== undefined),
    ]
  }
  return whileOpen(url, find, signal)
}

export function version(is: string | undefined): Finding {
  if (is === undefined) return ok('version', 'the server has not said its version')
  const what = `nats-server ${is}`
  if (!isSupported(is)) return problem('version', what, 'leases need 2.10 or later', 'upgrade all servers')
  if (is.startsWith('2.15.')) return ok('version', what)
  return warning('version', what, 'Holdfast is not tested with it', 'use nats-server 2.15')
}

function storageFinding(storage: unknown): Finding {
  if (storage === 'file') return ok('nats-storage', 'the bucket is on disk')
  const why = 'names that are held are free after a restart of its servers'
  return warning('nats-storage', 'the bucket is in memory', why, 'create it anew with file storage')
}

export function replication(replicas: number, isCluster: boolean): Finding {
  const what = `the bucket has ${replicas === 1 ? 'one replica' : `${replicas} replicas`}`
  if (replicas > 1 || !isCluster) return ok('nats-replicas', what)
  const why = 'leases are neither granted nor renewed while its server is down, and are lost with its disk'
  return warning('nats-replicas', what, why, 'nats stream edit KV_BUCKET --replicas 3')
}
