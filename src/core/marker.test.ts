import { expect, test, vi } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'
import type { LeaseRecord } from '../contract/store.ts'

const within = 3_600_000

test('a run that succeeds beside one that had lost its lease keeps its marker', async () => {
  const { clock, store, locks, other } = stage()
  const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = follow(locks.once('a', { within }, () => one.promise))
  await clock.advance(10)
  await other.break('a') // the first does not know yet
  const second = follow(other.once('a', { within }, () => two.promise))
  await clock.advance(10)
  const release = store.holdRequests('release')
  one.resolve()
  await clock.advance(10) // it writes its marker
  two.resolve()
  await clock.advance(10)
  release()
  await clock.advance(100)
  expect(second.value).toMatchObject({ ran: true })
  expect(first.error).toMatchObject({ code: 'LEASE_LOST' })
  expect(await locks.once('a', { within }, async () => {})).toMatchObject({ ran: false, why: 'ran' })
})

test('a run that had lost its lease does not replace the marker of a later one', async () => {
  const { clock, locks, other } = stage({ owner: 'first' })
  const one = Promise.withResolvers<void>()
  const first = follow(locks.once('a', { within }, () => one.promise))
  await clock.advance(10)
  await other.break('a')
  const again = other.once('a', { within }, async () => {})
  await clock.advance(10)
  expect(await again).toMatchObject({ ran: true })
  one.resolve()
  await clock.advance(100)
  expect(first.error).toMatchObject({ code: 'LEASE_LOST' })
  const { holder } = (await locks.once('a', { within }, async () => {})) as { holder?: LeaseRecord }
  expect(holder?.owner).not.toBe('first')
})

test('a run is not marked if the store cannot say which run has a marker', async () => {
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const { locks, store } = stage()
  const asked = locks.once('of nobody', { within }, async () => {
    store.rule('acquire', async () => ({ held: false, retryAfter: 10 }))
  })
  expect(await asked).toMatchObject({ ran: true })
  expect(warnings).toHaveBeenCalledExactlyOnceWith(
    expect.stringContaining('it is not known which run has a marker'),
    expect.objectContaining({ code: 'HOLDFAST_NOT_MARKED' }),
  )
  warnings.mockRestore()
})
