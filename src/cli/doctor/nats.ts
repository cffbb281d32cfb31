import { isSupported } from '../../stores/nats/client.ts'
import { targetOf, whileOpen } from '../../stores/nats/open.ts'
import { type Finding, ok, problem, tlsFinding, warning } from './finding.ts'

/** Checks the bucket of a URL, and the server that answers. Rejects if none does, or if the bucket is missing. */
export async function checkNats(url: string): Promise<Finding[]> {
  const { hosts, isTls } = targetOf(url)
  return whileOpen(url, async (kvm, bucket) => {
    const kv = await kvm.open(bucket, { allow_direct: false })
    const { storage, num_replicas: replicas = 1 } = (await kv.status()).streamInfo.config
    const info = kvm.js.nc.info
    return [
      tlsFinding(hosts, isTls),
      versionFinding(info?.version ?? 'unknown'),
      storageFinding(storage),
      replicasFinding(replicas, info?.cluster !== undefined),
    ]
  })
}

function versionFinding(is: string): Finding {
  if (isSupported(is)) return ok('version', `nats-server ${is}, tested with 2.15`)
  return problem('version', `nats-server ${is}`, 'leases need 2.10 or later', 'upgrade all servers')
}

function storageFinding(storage: unknown): Finding {
  if (storage === 'file') return ok('nats-storage', 'the bucket is on disk')
  const why = 'names that are held are free after a restart of its servers'
  return warning('nats-storage', 'the bucket is in memory', why, 'create it anew with file storage')
}

function replicasFinding(replicas: number, isCluster: boolean): Finding {
  const what = `the bucket has ${replicas === 1 ? 'one replica' : `${replicas} replicas`}`
  if (replicas > 1 || !isCluster) return ok('nats-replicas', what)
  const why = 'leases are neither granted nor renewed while its server is down, and are lost with its disk'
  return warning('nats-replicas', what, why, 'nats stream edit KV_BUCKET --replicas 3')
}
