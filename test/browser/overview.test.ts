import { Redis } from 'ioredis'
import type { Page } from 'playwright-core'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { redis } from '../../src/stores/redis/index.ts'
import { closeBrowser, openPage } from './browser.ts'
import { content } from './content.ts'
import { lowestContrast } from './contrast.ts'
import { served } from './served.ts'
import { fullSemaphore, silentProcess, stuckAmongMany } from './situations.ts'

afterAll(closeBrowser)

const DESKTOP = { width: 1280, height: 800 }
const TELEPHONE = { width: 390, height: 844 }

/** Each opens a page in which the situation is shown. */
const SITUATIONS = {
  async 'a stuck holder among 200 names'(options: object): Promise<Page> {
    const { locks, address } = await served()
    await stuckAmongMany(locks)
    return await opened(address, options, 'may be stuck')
  },
  async 'a process that renews none of its five names'(options: object): Promise<Page> {
    const { locks, address } = await served()
    const [renew, fallSilent] = await silentProcess(locks)
    const page = await opened(address, options, 'Longest wait')
    await renew?.()
    const rows = page.locator('#rows tbody', { hasText: 'invoices' })
    await until('the renewal is seen', async () => (await rows.getByText('10 min').count()) === 5)
    await fallSilent?.()
    await page.getByRole('status').getByText('has not renewed').waitFor()
    return page
  },
  async 'a full semaphore'(options: object): Promise<Page> {
    const { locks, address } = await served()
    await fullSemaphore(locks)
    return await opened(address, options, 'Longest wait')
  },
  async 'a store that is down'(options: object): Promise<Page> {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const { locks, address } = await served(redis(new Redis(server.port, { lazyConnect: true })))
    await fullSemaphore(locks)
    const page = await opened(address, options, 'Longest wait')
    await server.kill()
    await page.locator('#say').getByText('cannot be read').waitFor()
    return page
  },
  async 'an empty store'(options: object): Promise<Page> {
    return await opened((await served()).address, options, 'No name is held')
  },
}

async function opened(address: string, options: object, say: string): Promise<Page> {
  const page = await openPage(address, options)
  await page.locator('#say').getByText(say).waitFor()
  return page
}

/** Cells of numbers that have more than one line, or less space than their text. */
function cramped(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = []
    for (const cell of document.querySelectorAll<HTMLElement>(
      `#rows ${innerWidth < 700 ? 'td' : ''}:is(.held, .due, .count, .wait)`,
    )) {
      const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(cell)
      const lines =
        (cell.clientHeight - Number.parseFloat(paddingTop) - Number.parseFloat(paddingBottom)) /
        Number.parseFloat(lineHeight)
      if (cell.checkVisibility() && (lines > 1.5 || cell.scrollWidth > cell.clientWidth)) found.push(cell.textContent)
    }
    return found
  })
}

test.each(Object.entries(SITUATIONS))('%s: said in words, in colours and columns that can be read', async (_, show) => {
  const page = await show({ viewport: DESKTOP })
  expect(await content(page)).toMatchSnapshot()
  for (const viewport of [DESKTOP, { width: 800, height: 600 }, TELEPHONE]) {
    await page.setViewportSize(viewport)
    expect(await cramped(page), `${viewport.width} px`).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(viewport.width)
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect((await lowestContrast(page)).ratio, colorScheme).toBeGreaterThanOrEqual(4.5)
  }
})

const { 'a stuck holder among 200 names': stuck, 'a process that renews none of its five names': silent } = SITUATIONS
const { 'a full semaphore': semaphore, 'a store that is down': down } = SITUATIONS

test('17 names of which five are stuck take two lines each on a telephone', async () => {
  const page = await silent({ viewport: TELEPHONE })
  const heights = await page
    .locator('#rows tbody:not(:has(.sign td:not(:empty)))')
    .evaluateAll(all => all.map(each => each.clientHeight))
  expect(heights).toHaveLength(16)
  expect(Math.max(...heights)).toBeLessThan(65)
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(1_600)
  const [filter, table] = await Promise.all([
    page.locator('#filter').boundingBox(),
    page.locator('#rows').boundingBox(),
  ])
  expect(filter?.width).toBe(table?.width)
})

test('a sign has a row of its own under the name, as wide as the table', async () => {
  const page = await stuck({ viewport: DESKTOP })
  const sign = page.locator('#rows .sign td', { hasText: 'Held for' })
  const [box, name, table] = await Promise.all([
    sign.boundingBox(),
    page.locator('#rows tbody').first().locator('.main').boundingBox(),
    page.locator('#rows').boundingBox(),
  ])
  expect(box?.y).toBeGreaterThanOrEqual((name?.y ?? 0) + (name?.height ?? 0) - 1)
  expect(box?.width).toBe(table?.width)
})

test.each([
  ['the pointer is over them', (page: Page) => page.locator('#rows .link').getByText('reports').hover()],
  [
    'the keyboard is in them',
    async (page: Page) => {
      await page.locator('#filter').focus()
      for (const _ of ['backup', 'nightly', 'reports']) await page.keyboard.press('Tab')
    },
  ],
])('rows do not move while %s', async (_, enter) => {
  const { locks, address } = await served(memory())
  const [backup] = [await locks.acquire('backup'), await locks.acquire('nightly'), await locks.acquire('reports')]
  const page = await opened(address, { viewport: DESKTOP }, 'Nobody waits')
  const order = (): Promise<string[]> => page.locator('#rows .main .name').allTextContents()
  const place = async (): Promise<number | undefined> =>
    (await page.locator('#rows .link').getByText('reports').boundingBox())?.y
  await enter(page)
  const before = await place()
  await backup.release()
  await locks.acquire('a-new-name')
  void locks.acquire('reports', { owner: 'next' }).catch(() => {})
  await page.locator('#rows').getByText('a-new-name').waitFor()
  await page.locator('#rows .count').getByText('1').waitFor()
  expect(await order()).toEqual(['backup', 'nightly', 'reports', 'a-new-name'])
  expect(await page.locator('#rows .holder').nth(1).textContent(), 'who left').toBe('free')
  expect(await place()).toBe(before)
  await page.mouse.move(0, 0)
  await page.locator('#filter').focus()
  await page.locator('#rows').getByText('backup').waitFor({ state: 'detached' })
  expect(await order()).toEqual(['a-new-name', 'nightly', 'reports'])
})

test('a semaphore is one row that counts callers, and opens to its slots', async () => {
  const page = await semaphore({ viewport: DESKTOP })
  const row = page.locator('#rows tbody', { hasText: 'geocoder' })
  expect(await row.locator('.main .count').textContent()).toBe('2')
  expect(await row.locator('.slot').count()).toBe(0)
  await row.getByRole('button', { name: '5 of 5' }).click()
  expect(await row.locator('.slot .name').allTextContents()).toEqual(['slot 0', 'slot 1', 'slot 2', 'slots 3-4'])
  expect(await row.locator('.slot .holder').allTextContents()).toEqual(['worker-3', 'worker-2', 'worker-1', 'batch'])
  await row.getByRole('button', { name: '5 of 5' }).click()
  expect(await row.locator('.slot').count()).toBe(0)
})

test('a shared name that may be stuck keeps its sign when it is opened', async () => {
  const { locks, address } = await served()
  const permit = await locks.semaphore('api', { limit: 2 }).acquire({ ttl: 60_000 })
  const page = await opened(address, { viewport: DESKTOP }, 'Nobody waits')
  await permit.extend(600_000)
  await page.locator('#rows .due').getByText('10 min').waitFor()
  await permit.extend(240_000)
  await page.locator('#rows .sign').getByText('Not renewed').waitFor()
  const sign = await page.evaluate(() => {
    document.querySelector<HTMLElement>('#rows .open')?.click()
    return document.querySelector('#rows .sign')?.textContent
  })
  expect(sign).toMatch(/^Not renewed for/)
})

test('a process that renews none of its names is one sign, which leads to them, and stands in the title', async () => {
  const page = await silent({ viewport: DESKTOP })
  expect(await page.title()).toBe('(5) may be stuck · redis://cache:6379')
  expect(await page.locator('#rows .sign td:not(:empty)').allTextContents()).toEqual([
    expect.stringMatching(/^worker-a:4120 has not renewed 5 names for/),
  ])
  expect(await page.locator('#rows .stuck').count()).toBe(5)
  await page.locator('#lead').click()
  expect(await page.locator('#rows tbody').count()).toBe(5)
})

test('owners and names of one deployment differ at their ends, which are shown at every width', async () => {
  const { locks, address } = await served()
  const long = 'invoices-worker-7d4b9c6f5-eu-central-1-'
  for (const end of ['x2x9k', 'lm4tx']) await locks.acquire(`${long}${end}`, { owner: `${long}${end}` })
  const page = await opened(address, { viewport: DESKTOP }, 'Nobody waits')
  const rows = page.locator('#rows .main')
  for (const width of [1280, 1000, 800, 390]) {
    await page.setViewportSize({ width, height: 800 })
    await rows
      .first()
      .locator('.name', { hasText: /^invoices.*…/ })
      .waitFor()
    const cells = rows.locator(':is(.link, td.holder)')
    await expect
      .poll(() => cells.evaluateAll(all => all.filter(each => each.scrollWidth > each.clientWidth).length))
      .toBe(0)
    expect(await cells.allTextContents(), `${width} px`).toEqual([
      ...[expect.stringMatching(/^invoices?.*…(.*-)?lm4tx$/), expect.stringMatching(/^invo.*….*lm4tx$/)],
      ...[expect.stringMatching(/^invoices?.*…(.*-)?x2x9k$/), expect.stringMatching(/^invo.*….*x2x9k$/)],
    ])
  }
  expect(await rows.first().locator('.holder').getAttribute('title')).toBe(`${long}lm4tx`)
})

test('a filter without a result says so', async () => {
  const page = await semaphore({ viewport: DESKTOP })
  await page.locator('#filter').fill('Worker-3')
  await page.locator('#rows').getByText('nightly-backup').waitFor({ state: 'detached' })
  expect(await page.locator('#rows .main').count(), 'found by the holder of a slot').toBe(1)
  await page.locator('#filter').fill('nothing of this')
  await page.getByText('No name, holder or note contains “nothing of this”').waitFor()
  expect(await page.locator('#rows').isVisible()).toBe(false)
})

test('what is old is dim while the store is down', async () => {
  const page = await down({ viewport: DESKTOP })
  const color = (selector: string): Promise<string> =>
    page
      .locator(selector)
      .first()
      .evaluate(each => getComputedStyle(each).color)
  expect(await color('#rows .link')).toBe(await color('#counts dd'))
  expect(await color('#rows .link')).not.toBe(await color('h1'))
})
