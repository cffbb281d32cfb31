// What the dashboard shows a person, in Chromium: the situations that its tests read.
import { join } from 'node:path'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { findBinary } from '../lab/servers/binary.ts'
import { until } from '../lab/servers/until.ts'
import { memory } from '../src/stores/memory/index.ts'
import { type Served, serve } from '../test/browser/serve.ts'
import { fullSemaphore, silentProcess, stuckAmongMany } from '../test/browser/situations.ts'

const ROOT = join(import.meta.dirname, '..')

/** How each picture is taken: what the store holds, what is done on the page, and what must then be on it. */
const PICTURES: Readonly<Record<string, (served: Served, open: Open) => Promise<Page>>> = {
  'docs/operations/dashboard-page.png': async ({ locks, address }, open) => {
    const [renew, fallSilent] = await silentProcess(locks)
    const page = await open(address, { colorScheme: 'light' })
    const rows = page.locator('#rows tbody', { hasText: 'invoices' })
    await rows.first().waitFor()
    await renew?.()
    await until('the renewal is seen', async () => (await rows.getByText('10 min').count()) === 5)
    await fallSilent?.()
    await page.locator('#say').getByText('has not renewed').waitFor()
    return page
  },
  'docs/operations/dashboard-semaphore.png': async ({ locks, address }, open) => {
    await fullSemaphore(locks)
    const page = await open(address, { colorScheme: 'dark', viewport: { width: 1000, height: 580 } })
    await page.getByRole('button', { name: '5 of 5' }).click()
    await page.mouse.move(0, 0)
    return page
  },
  'docs/operations/dashboard-name.png': async ({ locks, address }, open) => {
    await stuckAmongMany(locks)
    const page = await open(address, { colorScheme: 'light', viewport: { width: 1000, height: 872 } })
    await page.locator('#lead').getByText('invoices-17').click()
    await page.locator('#one .queue').getByText('worker-d').waitFor()
    return page
  },
}

type Open = (address: string, options: BrowserContextOptions) => Promise<Page>

/** Makes those that are wanted. */
export async function pagePictures(isWanted: (path: string) => boolean): Promise<void> {
  const paths = Object.keys(PICTURES).filter(isWanted)
  if (paths.length === 0) return
  const { path: executablePath, env } = findBinary('chromium', 'chromium')
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox'],
    env: { ...process.env, ...env } as never,
  })
  const open: Open = async (address, options) => {
    const page = await browser.newPage({ viewport: { width: 1000, height: 720 }, ...options })
    await page.goto(address)
    return page
  }
  for (const path of paths) {
    await using served = await serve(memory())
    const page = await PICTURES[path]?.(served, open)
    await page?.screenshot({ path: join(ROOT, path) })
    await page?.close()
    console.log(path)
  }
  await browser.close()
}
