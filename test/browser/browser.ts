import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { findBinary } from '../../lab/servers/binary.ts'

let browser: Promise<Browser> | undefined

/** A page of Debian's Chromium. An error of its script fails the test. `inject` changes the HTML on its way. */
export async function openPage(
  address: string,
  options: BrowserContextOptions = {},
  inject?: (html: string) => string,
): Promise<Page> {
  browser ??= launched()
  const context = await (await browser).newContext(options)
  if (inject)
    await context.route(address, async route => {
      const response = await route.fetch()
      await route.fulfill({ response, body: inject(await response.text()) })
    })
  const page = await context.newPage()
  const errors: Error[] = []
  page.on('pageerror', error => errors.push(error))
  onTestFinished(async () => {
    await context.close()
    if (errors[0]) throw errors[0]
  })
  await page.goto(address)
  return page
}

/** Ends the browser, if one was started. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close()
}

function launched(): Promise<Browser> {
  const { path, env } = findBinary('chromium', 'chromium')
  // Its sandbox does not work for root, and it opens nothing but pages of these tests.
  return chromium.launch({ executablePath: path, args: ['--no-sandbox'], env: { ...process.env, ...env } as never })
}
