import { gatewayOf } from '../../stores/etcd/index.ts'
import { optionsAt } from '../../stores/etcd/open.ts'
import { type Finding, ok, problem, tlsFinding, warning } from './finding.ts'

interface Status {
  readonly version?: string
  /** The alarms of the cluster, such as `memberID:123 alarm:NOSPACE`. */
  readonly errors?: readonly string[]
}

/** Checks the etcd cluster of a URL. Rejects if no server answers. `signal` ends the checks. */
export async function checkEtcd(url: string, signal: AbortSignal): Promise<Finding[]> {
  const options = optionsAt(url)
  const gateway = gatewayOf(options)
  const close = (): void => gateway.close() // requests in flight reject
  signal.addEventListener('abort', close)
  try {
    const { version: is = 'unknown', errors = [] } = await gateway.ask<Status>('maintenance/status', {})
    const hosts = options.endpoints ?? []
    const [host = ''] = hosts.map(endpoint => endpoint.replace(/:\d+$/, ''))
    return [tlsFinding(host, options.tls !== undefined), version(is), alarm(errors)]
  } finally {
    signal.removeEventListener('abort', close)
    gateway.close()
  }
}

export function version(is: string): Finding {
  if (/^3\.[45]\./.test(is)) return ok('version', `etcd ${is}`)
  return warning('version', `etcd ${is}`, 'Holdfast is not tested with it', 'use etcd 3.4 or 3.5')
}

function alarm(errors: readonly string[]): Finding {
  if (errors.length === 0) return ok('etcd-alarm', 'no alarm is raised')
  const why = 'the cluster refuses writes, so no lease can be acquired or renewed'
  return problem('etcd-alarm', errors.join(', '), why, 'NOSPACE: compact, defragment, and disarm the alarm')
}
