import type { Link } from './client.ts'

/** Warns once if the server may throw leases away to make room. Silent if the user may not ask it. */
export async function warnOfEviction(link: Link): Promise<void> {
  try {
    const [first] = await link.masters()
    const info = String(await first?.(['INFO', 'memory']))
    const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0)
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction'
    if (limit === 0 || policy === 'noeviction') return
    process.emitWarning(
      `Redis may drop leases when its memory is full (maxmemory-policy ${policy}): two could then hold one name. ` +
        'Set maxmemory-policy noeviction, or give leases a server of their own.',
      { code: 'HOLDFAST_EVICTION' },
    )
  } catch {
    // Not permitted, or gone: whoever asks for a lease hears of it.
  }
}
