import type { Locks } from '../../create-locks.ts'

/** The names that are held at the server, in the order of their bytes. */
export async function heldNames(locks: Locks): Promise<string[]> {
  const names: string[] = []
  for await (const { name, state } of locks.list()) if (state === 'held') names.push(name)
  return names
}
