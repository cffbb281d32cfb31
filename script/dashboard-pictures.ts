import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { findBinary } from '../lab/servers/binary.ts'
import type { Locks } from '../src/index.ts'
import { memory } from '../src/stores/memory/index.ts'
import { serve } from '../test/browser/serve.ts'
import { fullSemaphore, stuckAmongMany } from '../test/browser/situations.ts'

interface Picture {
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
  /** The page of one name. @default the first screen */
  readonly name?: string
  readonly happens: (locks: Locks) => Promise<void>
  /** What must be visible. */
  readonly shows: string
}

/** Pictures of the dashboard, by their paths. */
export const DASHBOARD_PICTURES: Readonly<Record<string, Picture>> = {
  'docs/operations/dashboard-page.png': {
    ...{
      colorScheme: 'light',
      width: 1_200,
      height: 590,
      happens: stuckAmongMany,
      shows: '#say:has-text("may be stuck")',
    },
  },
  'docs/operations/dashboard-name.png': {
    ...{
      colorScheme: 'dark',
      width: 1_000,
      height: 1_036,
      name: 'geocoder',
      happens: fullSemaphore,
      shows: '.queue:has-text("≥ 3.")',
    },
  },
}

/** Makes one of them in Chromium. */
export async function dashboardPicture(path: string): Promise<void> {
  const { colorScheme, width, height, name = '', happens, shows } = DASHBOARD_PICTURES[path] as Picture
  await using served = await serve(memory())
  await happens(served.locks)
  const { path: executablePath, env } = findBinary('chromium', 'chromium')
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox'],
    env: { ...process.env, ...env } as never,
  })
  try {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme })
    await page.goto(`${served.address}#${name}`)
    await page.locator(shows).waitFor()
    await page.screenshot({ path: join(import.meta.dirname, '..', path) })
  } finally {
    await browser.close()
  }
}
