import type { Locator, Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { markerOf } from '../../src/contract/reserved.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { closeBrowser, openPage } from './browser.ts'
import { content } from './content.ts'
import { lowestContrast } from './contrast.ts'
import { served } from './served.ts'
import { fullSemaphore, stuckAmongMany } from './situations.ts'

afterAll(closeBrowser)

const typed = (page: Page): Locator => page.getByLabel(/^Type /)
const button = (page: Page): Locator => page.getByRole('button', { name: /^Break/ })
const of = (address: string, name: string): string => `${address}#${encodeURIComponent(name)}`
/** Of each row, the texts of these columns. */
const cells = (page: Page, ...columns: string[]): Promise<string[][]> =>
  page
    .locator('.holders tbody tr')
    .evaluateAll(
      (rows, wanted) => rows.map(row => wanted.map(each => row.querySelector(`.${each} span`)?.textContent ?? '')),
      columns,
    )

test('by keyboard alone, a name is reached and broken', async () => {
  const { locks, address } = await served()
  for (const name of ['backup', 'nightly', 'reports']) await locks.acquire(name, { owner: 'alice' })
  const page = await openPage(address)
  await page.locator('#rows').getByText('nightly').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('night')
  await page.locator('#rows').getByText('backup').waitFor({ state: 'detached' })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await typed(page).waitFor()
  const isFocused = (): Promise<boolean> => typed(page).evaluate(e => e === document.activeElement)
  for (let presses = 0; presses < 10 && !(await isFocused()); presses += 1) await page.keyboard.press('Tab')
  await page.keyboard.type('nightl')
  expect(await button(page).isDisabled()).toBe(true)
  await page.keyboard.press('Enter')
  await page.keyboard.type('yy')
  expect(await button(page).isDisabled()).toBe(true)
  expect((await locks.inspect('nightly')).holders[0]).toBeDefined()
  await page.keyboard.press('Backspace')
  await page.keyboard.press('Enter')
  await page.getByText('Taken from alice').waitFor()
  expect((await locks.inspect('nightly')).holders[0]).toBeUndefined()
  await page.keyboard.press('Escape')
  await page.locator('#all').waitFor()
})

test('a break takes nothing from a later holder than the one that is shown', async () => {
  const { locks, address } = await served()
  const shown = await locks.acquire('nightly')
  const page = await openPage(of(address, 'nightly'))
  await page.locator('#one').getByText('Held by').waitFor()
  await page.route(/api=name/, () => {}) // from now on the page shows what it shows
  await shown.release()
  const { token } = await locks.acquire('nightly')
  await typed(page).fill('nightly')
  await page.keyboard.press('Enter')
  await page.getByText('Not broken: nobody who was shown still holds it').waitFor()
  expect((await locks.inspect('nightly')).holders[0]?.token).toBe(token)
  expect(await typed(page).inputValue(), 'it is typed again for another attempt').toBe('')
})

test('the name that was typed for one holder does not break the lease of the next', async () => {
  const { locks, address } = await served()
  const first = await locks.acquire('nightly', { owner: 'first' })
  const page = await openPage(of(address, 'nightly'))
  await typed(page).fill('nightly')
  expect(await button(page).isEnabled()).toBe(true)
  await first.release()
  await locks.acquire('nightly', { owner: 'second' })
  await page.getByText('The holder has changed').waitFor()
  expect([await typed(page).inputValue(), await button(page).isDisabled()]).toEqual(['', true])
})

test('a free name has a history, and no form to break it until somebody holds it', async () => {
  const { locks, address } = await served()
  const first = await locks.acquire('nightly', { owner: 'first', note: 'backup' })
  const page = await openPage(of(address, 'nightly'))
  const other = await page.context().newPage()
  await other.goto(of(address, 'nightly'))
  await button(other).waitFor()
  await first.release()
  await page.locator('#one dd').getByText('Free').waitFor()
  for (const tab of [page, other]) await button(tab).waitFor({ state: 'hidden' })
  expect(await typed(page).isVisible()).toBe(false)
  const [[owner, to] = []] = await cells(page, 'who', 'to')
  expect([owner, to]).toEqual(['first', expect.stringMatching(/\d:\d\d/)])
  await locks.acquire('nightly', { owner: 'second' })
  await button(page).waitFor()
  expect(await cells(page, 'who', 'to')).toEqual([
    ['second', 'now'],
    ['first', to],
  ])
  const bars = await page.locator('.holders .lane span').evaluateAll(all =>
    all.map(each => {
      const [bar, lane] = [each.getBoundingClientRect(), each.parentElement?.getBoundingClientRect()]
      return [bar.width >= 3, bar.left >= (lane?.left ?? 0), bar.right <= (lane?.right ?? 0)]
    }),
  )
  expect(bars, 'each bar is inside of its lane').toEqual([Array(3).fill(true), Array(3).fill(true)])
})

test('a semaphore opens to its slots and its queue, and is broken in the slot that is chosen, or in all', async () => {
  const { locks, address } = await served()
  const geocoder = locks.semaphore('geocoder', { limit: 5 })
  const permits = []
  for (const index of [0, 1, 2]) permits.push(await geocoder.acquire({ owner: `worker ${index}`, note: 'city' }))
  permits.push(await geocoder.acquire({ owner: 'batch', permits: 2 }))
  for (const owner of ['next', 'last']) geocoder.acquire({ owner, permits: 2 }).catch(() => {})
  await until('two wait', async () => (await locks.inspect('geocoder')).waiters.length === 2)
  const page = await openPage(of(address, 'geocoder'))
  await page.locator('.holders').getByText('slots 3-4').waitFor()
  expect(await cells(page, 'slot', 'who', 'to')).toEqual([
    ...[0, 1, 2].map(index => [`slot ${index}`, `worker ${index}`, 'now']),
    ['slots 3-4', 'batch', 'now'],
  ])
  expect(await page.locator('.queue tbody tr').first().textContent()).toMatch(/^1nextfor 2 slots≥ /)
  expect(await page.locator('#one dd').allTextContents()).toEqual(['5 of 5', '2', expect.stringMatching(/^≥ /)])
  await typed(page).fill('geocoder')
  expect(await button(page).isDisabled(), 'without a slot').toBe(true)
  await page.getByLabel('Lease').selectOption('slots 3-4 · batch')
  await page.getByRole('button', { name: 'Break slots 3-4' }).click()
  await page.getByText('Taken from batch').waitFor()
  await page.locator('.holders').getByText('next').waitFor()
  expect(await page.getByLabel('Lease').inputValue(), 'what was chosen is gone').toBe('')
  expect(await cells(page, 'slot', 'who')).toEqual([
    ...[0, 1, 2].map(index => [`slot ${index}`, `worker ${index}`]),
    ['slots 3-4', 'next'],
    ['', 'batch'],
  ])
  permits[0]?.assertHeld()
  await page.getByLabel('Lease').selectOption('all 4')
  await typed(page).fill('geocoder')
  await page.getByRole('button', { name: 'Break all 4 leases' }).click()
  await page.locator('.holders').getByText('last').waitFor()
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
  const page = await openPage(of(address, 'nightly'))
  await page.locator('#one').getByText('Held by').waitFor()
  expect(await page.locator('form').count()).toBe(0)
})

test('a marker is no holder, and removing it does not skip the next run', async () => {
  const { locks, address } = await served()
  await locks.once('job', { within: 600_000, owner: 'cron' }, async () => {})
  const page = await openPage(of(address, markerOf('job')))
  await page.locator('#one dd').getByText('by cron').waitFor()
  await typed(page).fill('job')
  await page.getByRole('button', { name: 'Remove the marker' }).click()
  await page.getByText('The marker is removed: the next run is not skipped').waitFor()
})

test.each([
  '<img src=x onerror="window.broken = 1">',
  '  two  spaces  ',
  'icon\ue0b0 备份 تقرير',
  'a-name-without-a-place-to-break-'.repeat(7),
])('an odd name is shown as text, and broken as it is shown: %j', async name => {
  const { locks, address } = await served()
  await locks.acquire(name, { owner: name, note: name })
  const page = await openPage(of(address, name), { viewport: { width: 390, height: 844 } })
  await page.locator('#one').getByText('Held by').waitFor()
  const title = (await page.locator('.title').textContent()) ?? ''
  expect(title).toBe(name.replace('\ue0b0', '\\u{e0b0}'))
  expect(await page.evaluate(() => ['broken' in window, document.documentElement.scrollWidth])).toEqual([false, 390])
  await typed(page).fill(title)
  await button(page).click()
  await page.getByText('Taken from').waitFor()
  expect((await locks.inspect(name)).holders).toEqual([])
})

test('a selected text stays selected while the page is refreshed', async () => {
  const { locks, address } = await served()
  const { token } = await locks.acquire('nightly')
  const page = await openPage(of(address, 'nightly'))
  await page.locator('.holders td.token').dblclick()
  const before = await page.locator('.holders td.for').textContent()
  await until('it is refreshed', async () => (await page.locator('.holders td.for').textContent()) !== before)
  expect(await page.evaluate(() => getSelection()?.toString().trim())).toBe(`${token}`)
})

test.each([
  ['light', 390],
  ['dark', 390],
  ['light', 1280],
  ['dark', 1280],
] as const)(
  'every text has a contrast of 4.5:1, and Break is red over the full width: %s, %i px',
  async (colorScheme, width) => {
    const { locks, address } = await served()
    const geocoder = locks.semaphore('geocoder', { limit: 2 })
    const first = await geocoder.acquire({ owner: 'first', note: 'city' })
    await geocoder.acquire({ owner: 'second' })
    geocoder.acquire({ owner: 'next' }).catch(() => {})
    const page = await openPage(of(address, 'geocoder'), { viewport: { width, height: 844 }, colorScheme })
    await page.locator('.queue').getByText('next').waitFor()
    await first.release()
    await page.locator('.holders .over').waitFor()
    expect((await lowestContrast(page)).ratio, 'disabled').toBeGreaterThanOrEqual(4.5)
    await page.getByLabel('Lease').selectOption('all 2')
    await typed(page).fill('geocoder')
    const lowest = await lowestContrast(page)
    expect(lowest.ratio, lowest.text).toBeGreaterThanOrEqual(4.5)
    const look = await button(page).evaluate(each => {
      const [form, { backgroundColor }] = [each.parentElement?.clientWidth ?? 0, getComputedStyle(each)]
      return { of: (each as HTMLElement).offsetWidth / form, red: backgroundColor.match(/\d+/g)?.map(Number) }
    })
    expect(look.of).toBeGreaterThan(0.9)
    const [red = 0, green = 0, blue = 0] = look.red ?? []
    expect(red).toBeGreaterThan(3 * Math.max(green, blue))
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
  },
)

test.each([
  ['a holder that may be stuck', 'invoices-17', stuckAmongMany],
  ['a full semaphore', 'geocoder', fullSemaphore],
] as const)('what the page of a name says: %s', async (_, name, happens) => {
  const { locks, address } = await served()
  await happens(locks)
  const page = await openPage(of(address, name))
  await page.locator('.queue').getByText('worker-c:4122').or(page.locator('.queue').getByText('worker-5')).waitFor()
  expect(await content(page)).toMatchSnapshot()
})
