import { expect, test } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'

test('a term whose lease ends before its work begins does not end the election', async () => {
  const { locks, store, clock } = stage({ ttl: 10_000 })
  const now = clock.now.bind(clock)
  let computed = 0
  clock.now = () => now() + computed
  const release = store.holdReplies('acquire') // both grants arrive together
  const other = follow(
    locks.using('other', async () => {
      computed += 11_000
    }),
  )
  let terms = 0
  const election = follow(
    locks.election('leader').run(async ({ signal }) => {
      terms += 1
      await new Promise(resolve => signal.addEventListener('abort', resolve))
    }),
  )
  await clock.advance(1)
  release()
  store.restore('acquire')
  await clock.advance(60_000)
  expect(other.error).toMatchObject({ code: 'LEASE_LOST' })
  expect(election.settled).toBe(false)
  expect(terms).toBe(1)
})
