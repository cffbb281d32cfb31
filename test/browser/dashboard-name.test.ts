import { afterAll, expect, test } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { closeBrowser, openPage } from './browser.ts'
import { served } from './served.ts'

afterAll(closeBrowser)

test('by keyboard alone, a name is reached and broken', async () => {
  const { locks, address } = await served()
  for (const name of ['backup', 'nightly', 'reports']) await locks.acquire(name)
  const page = await openPage(address)
  await page.locator('#rows').getByText('nightly').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('night')
  await page.locator('#rows').getByText('backup').waitFor({ state: 'detached' })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByLabel('Type the name to break it').waitFor()
  const isFocused = (): Promise<boolean> => page.getByLabel('Type the name').evaluate(e => e === document.activeElement)
  for (let presses = 0; presses < 10 && !(await isFocused()); presses += 1) await page.keyboard.press('Tab')
  await page.keyboard.type('nightl')
  await page.keyboard.press('Enter')
  await page.getByText('Type the name exactly to break it').waitFor()
  expect((await locks.inspect('nightly')).holders[0]).toBeDefined()
  await page.keyboard.type('y')
  await page.keyboard.press('Enter')
  await page.getByText('Taken from its holder').waitFor()
  expect((await locks.inspect('nightly')).holders[0]).toBeUndefined()
  await page.keyboard.press('Escape')
  await page.locator('#all').waitFor()
})

test('a break takes nothing from a later holder than the one that is shown', async () => {
  const { locks, address } = await served()
  const shown = await locks.acquire('nightly')
  const page = await openPage(address)
  await page.locator('#rows').getByText('nightly').click()
  await page.locator('#one').getByText('Held by').waitFor()
  await page.route(/api=name/, () => {}) // from now on the page shows what it shows
  await shown.release()
  const { token } = await locks.acquire('nightly')
  await page.getByLabel('Type the name to break it').fill('nightly')
  await page.keyboard.press('Enter')
  await page.getByText('Not broken: that holder no longer has it').waitFor()
  expect((await locks.inspect('nightly')).holders[0]?.token).toBe(token)
})

test('a semaphore is one row that opens to its holders, of which one is broken', async () => {
  const { locks, address } = await served()
  const geocoder = locks.semaphore('geocoder', { limit: 5 })
  const permits = []
  for (const index of [0, 1, 2]) permits.push(await geocoder.acquire({ owner: `worker ${index}`, note: 'city' }))
  permits.push(await geocoder.acquire({ owner: 'batch', permits: 2 }))
  for (const owner of ['next', 'last']) geocoder.acquire({ owner, permits: 2 }).catch(() => {})
  await until('two wait', async () => (await locks.inspect('geocoder')).waiters.length === 2)
  const page = await openPage(address)
  const row = page.locator('#rows tr')
  await row.getByText('5 of 5').waitFor()
  expect(await row.count()).toBe(1)
  expect(await row.locator('td[data-title=Waiting]').textContent()).toMatch(/^2, /)
  await page.locator('#filter').fill('worker 2') // also found by one of its holders
  await row.getByText('geocoder').click()
  await page.getByText('slots 3-4: batch').waitFor()
  await page.getByText('next, for 2 slots').waitFor()
  await page.getByLabel('Type the name to break it').fill('geocoder')
  await page.keyboard.press('Enter')
  await page.getByText('Choose the lease to break, or all of them').waitFor()
  await page.getByLabel('The lease to break').selectOption('slots 3-4, batch')
  await page.getByRole('button', { name: 'Break' }).click()
  await page.getByText('Taken from its holder').waitFor()
  await page.getByText('slots 3-4: next').waitFor()
  permits[0]?.assertHeld()
  await page.getByLabel('The lease to break').selectOption('All of them')
  await page.getByRole('button', { name: 'Break' }).click()
  await page.getByText('slots 0-1: last').waitFor()
})

test('a name that is not among the first 5,000 is unknown, not free', async () => {
  const { locks, address } = await served()
  const names = Array.from({ length: 5_000 }, (_, index) => `job-${index}`)
  await Promise.all([...names, 'last'].map(name => locks.acquire(name)))
  const page = await openPage(`${address}#last`)
  await page.locator('#one').getByText('Unknown: it was not seen, and only some names are read').waitFor()
})

test('who may only read is not offered to break a name', async () => {
  const { locks, address } = await served(memory(), 'read')
  await locks.acquire('nightly')
  const page = await openPage(address)
  await page.locator('#rows').getByText('nightly').click()
  await page.locator('#one').getByText('Held by').waitFor()
  expect(await page.locator('form').count()).toBe(0)
})
