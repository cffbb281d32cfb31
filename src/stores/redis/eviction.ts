import { warn } from '../../contract/warnings.ts'
import type { Link } from './client.ts'
import { fields } from './info.ts'

/** Warns once if the server may throw leases away to make room. Silent if the user may not ask it. */
export async function warnOfEviction(link: Link): Promise<void> {
  try {
    const [first] = await link.masters()
    const info = fields(String(await first?.(['INFO', 'memory'])))
    const { maxmemory: limit = '0', maxmemory_policy: policy = 'noeviction' } = info
    if (limit === '0' || policy === 'noeviction') return
    warn(
      'HOLDFAST_EVICTION',
      `Redis may drop leases when its memory is full (maxmemory-policy ${policy}): two could then hold one name. ` +
        'Set maxmemory-policy noeviction, or give leases a server of their own.',
      policy,
    )
  } catch {
    // Not permitted, or gone: whoever asks for a lease hears of it.
  }
}
