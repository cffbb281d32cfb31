import { warn } from '../../contract/warnings.ts'
import type { Wire } from './client.ts'

/** Parses the lines `name:value` of `INFO`. */
export function fields(text: string): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(/^(\w+):(.*?)\r?$/gm), ([, name, value]) => [name, value]))
}

/**
 * Warns once if the server may evict leases when its memory is full. Does not warn if the user may not read that setting.
 */
export async function warnOfEviction(wire: Wire): Promise<void> {
  try {
    const [first] = await wire.masters()
    const info = fields(String(await first?.(['INFO', 'memory'])))
    const { maxmemory: limit = '0', maxmemory_policy: policy = 'noeviction' } = info
    if (limit === '0' || policy === 'noeviction') return
    warn(
      'HOLDFAST_EVICTION',
      `Redis may drop leases when its memory is full (maxmemory-policy ${policy}). Set maxmemory-policy noeviction, or ` +
        'give leases a server of their own.',
      policy,
    )
  } catch {
    // The command is not permitted, or the connection has ended. A request for a lease reports that.
  }
}
