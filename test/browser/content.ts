import type { Page } from 'playwright-core'

/** What a reader sees, without what differs from run to run. Of many lines the first. */
export async function content(page: Page): Promise<string> {
  const text = await page.locator('body').innerText()
  const lines = text
    .replaceAll(/([A-Z][a-z]+ \d+, )?\d+:\d\d:\d\d [AP]M/g, 'TIME')
    .replaceAll(/[\d.]+ (s|min|h)\b/g, 'N s')
    .replaceAll(/\d{16}/g, 'TOKEN')
    .split('\n')
  return lines
    .map(line => line.replaceAll('\t', ' | ').trimEnd())
    .filter(line => line !== '')
    .slice(0, 40)
    .join('\n')
    .replace(/127\.0\.0\.1:\d+/, 'HOST')
    .replace(/lost (no|\d+) lease/, 'lost N lease') // a store that is down may lose those of this process
}
