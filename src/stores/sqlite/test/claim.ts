import { randomBytes } from 'node:crypto'
import type { Claim } from '../../../contract/store.ts'

export function newClaim(name: string, wishes: Partial<Claim> = {}): Claim {
  const id = randomBytes(16).toString('hex')
  return { name, id, owner: `process ${process.pid}`, ttl: 10_000, note: '', queue: false, ...wishes }
}
