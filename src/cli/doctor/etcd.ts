import { optionsAt } from '../../stores/etcd/open.ts'
import { type EtcdOptions, gatewayOf } from '../../stores/etcd/options.ts'
import { answersOf, type Finding, ok, problem, tlsFinding, warning } from './finding.ts'
import { whileOpen } from './while-open.ts'

interface Status {
  readonly version?: string
  /** The alarms of the cluster, such as `memberID:123 alarm:NOSPACE`. */
  readonly errors?: readonly string[]
}

/** Checks the etcd cluster of a URL. Rejects if no server answers. `signal` ends the checks. */
export async function checkEtcd(url: string, signal: AbortSignal): Promise<Finding[]> {
  const options = optionsAt(url)
  const { endpoints = [] } = options
  const ask = (endpoint: string): Promise<Status> => statusOf({ ...options, endpoints: [endpoint] }, signal)
  const { answers, servers } = await answersOf(endpoints, endpoint => endpoint, ask)
  const { version: is = 'unknown' } = answers[0]
  const alarms = [...new Set(answers.flatMap(({ errors = [] }) => errors))]
  const hosts = endpoints.map(endpoint => endpoint.replace(/:\d+$/, ''))
  return [servers, tlsFinding(hosts, options.tls !== undefined), version(is), alarm(alarms)]
}

async function statusOf(options: EtcdOptions, signal: AbortSignal): Promise<Status> {
  const gateway = gatewayOf(options)
  return whileOpen(gateway, signal, () => gateway.ask<Status>('maintenance/status', {}))
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
