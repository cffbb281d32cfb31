import { PrismaPg } from '@prisma/adapter-pg'
import type { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import type { Lease } from '../../src/index.ts'
import { PrismaClient } from './dist/prisma/client.ts'

export function writer(pool: Pool) {
  const db = new PrismaClient({ adapter: new PrismaPg(pool) })
  const fence = postgresFence(pool)
  return (lease: Pick<Lease, 'name' | 'token'>, order: string, by: string): Promise<void> =>
    db.$transaction(async tx => {
      await tx.$executeRawUnsafe(fence.statement(lease)) // the first statement
      await tx.invoice.upsert({ where: { order }, create: { order, by }, update: { by } })
    })
}
