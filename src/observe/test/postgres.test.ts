import { expect, test } from 'vitest'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { acquire, claimOf, look, signal, storeAt, transaction } from '../../stores/postgres/test/support.ts'
import { leaseMetrics } from '../prometheus.ts'
import { numbers } from './exposition.ts'

test('PostgreSQL tells of the ghosts that it refused: late ones, and those whose claim was taken back', async () => {
  const server = await startPostgres()
  const metrics = leaseMetrics()
  const ghosts = (reason: string): number =>
    numbers(metrics.text()).get(`lease_ghosts_refused_total{store="postgres",reason="${reason}"}`) ?? Number.NaN
  try {
    await using store = storeAt(server.url())
    await look(store, { prefix: '' }) // which connects, and makes the tables
    const claim = claimOf('withdrawn')
    expect(await store.release(claim, signal)).toBe('gone')
    expect(await acquire(store, claim)).toMatchObject({ held: false })
    expect([ghosts('withdrawn'), ghosts('late')]).toEqual([1, 0])

    const locked = await transaction(server, 'lock table holdfast.lease in access exclusive mode')
    const late = acquire(store, claimOf('late', { ttl: 300 }))
    await expect(Promise.race([late, new Promise(resolve => setTimeout(resolve, 200))])).resolves.toBeUndefined()
    await locked.end()
    await expect(late).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(ghosts('late')).toBeGreaterThan(0)
  } finally {
    metrics.stop()
    await server.stop()
  }
})
