/**
 * Time travel with Jest, also under its fake timers. The clock of `testLocks` is moved by `advance`, the other timers by
 * Jest.
 *
 *     npx jest jest.test.cjs
 */
const { testFence, testLocks } = require('holdfast/testing')

beforeEach(() => jest.useFakeTimers())
afterEach(() => jest.useRealTimers())

test('a name that another holds is waited for', async () => {
  const locks = testLocks()
  const other = await locks.holdAsOther('ledger')
  const waiting = locks.acquire('ledger', { wait: 60_000 }) // start what takes time, advance, then await it
  await locks.advance(30_000)
  await other.release()
  await locks.advance(1_000)
  const lease = await waiting
  expect(lease.token > other.token).toBe(true)
})

test('a newer holder has written, so the write is refused', async () => {
  const fence = testFence()
  const lease = await testLocks().acquire('ledger')
  await fence.marks.raise('ledger', { epoch: 0, token: lease.token + 1n }) // the newer holder
  await expect(fence.transaction(lease, async () => 'written')).rejects.toMatchObject({ code: 'STALE_TOKEN' })
})
