import type { Connection } from './connection.ts'
import type { Keys } from './keys.ts'

/** All names that begin with `prefix` and are held or waited for, or were of late. */
export async function namesFrom(
  connection: Connection,
  keys: Keys,
  prefix: string,
  signal: AbortSignal,
): Promise<string[]> {
  const found = new Set<string>()
  const link = await connection.link()
  const scan = async (send: (args: readonly string[]) => Promise<unknown>): Promise<void> => {
    for (let cursor = '0'; ; ) {
      signal.throwIfAborted()
      const reply = await send(['SCAN', cursor, 'MATCH', keys.pattern(prefix), 'COUNT', '1000'])
      const [next, page] = reply as [unknown, unknown[]]
      for (const key of page) {
        const name = keys.nameOf(String(key))
        if (name?.startsWith(prefix)) found.add(name) // the key of `a{` matches the pattern of `a{}`
      }
      cursor = String(next)
      if (cursor === '0') return
    }
  }
  try {
    await Promise.all((await link.masters()).map(scan))
  } catch (error) {
    throw signal.aborted ? signal.reason : connection.failure(error)
  }
  return [...found]
}
