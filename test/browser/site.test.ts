import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeBrowser, openPage } from './browser.ts'

const ROOT = join(import.meta.dirname, '../..')
const DIST = join(ROOT, 'site/dist')
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
/** A result is found at once only if it is among the first. */
const FIRST = 3

/** What people type who know other libraries, and the pages that answer it. */
const SEARCHES: readonly (readonly [words: string, ...pages: string[]])[] = [
  ['limit concurrency', '/sharing/semaphore/'],
  ['cache stampede', '/guides/cache/'],
  ['redis down', '/faq/', '/troubleshooting/'],
  ["unlock someone else's lock", '/faq/', '/troubleshooting/'],
  ['lease lost', '/troubleshooting/', '/concepts/lease/'],
  ['cron twice', '/guides/cron/'],
  ['two pods', '/guides/leader-election/', '/guides/cron/'],
  ['unable to achieve a quorum', '/coming-from/redlock/', '/troubleshooting/'],
  ['auto extend', '/concepts/lease/', '/guides/long-job/'],
  ['event loop blocked', '/concepts/heartbeat-thread/', '/troubleshooting/'],
  ['which ttl', '/operations/ttl/', '/faq/'],
  ['deadlock', '/sharing/several-names/'],
  ['read write lock', '/sharing/readers-and-writers/'],
  ['fencing token', '/concepts/fencing/', '/fencing/'],
  ['is redlock safe', '/concepts/redlock/', '/faq/'],
  ['graceful shutdown SIGTERM', '/guides/long-job/', '/guides/leader-election/'],
  ['idempotency key', '/guides/once-per-request/'],
  ['reentrant', '/faq/', '/not-here/'],
  ['elasticache', '/operations/managed-redis/'],
  ['mock in unit tests', '/guides/testing/'],
]

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  const file = join(DIST, decodeURI(pathname), pathname.endsWith('/') ? 'index.html' : '')
  try {
    const body = readFileSync(file)
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(body)
  } catch {
    response.writeHead(404).end()
  }
})
let origin = ''

beforeAll(async () => {
  await promisify(execFile)(join(ROOT, 'script/site'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}, 600_000)

afterAll(async () => {
  await closeBrowser()
  server.close()
  server.closeAllConnections()
})

test('every page is on the site, is reached by links, and no link of the site is broken', () => {
  const pages = new Map(
    globSync('**/index.html', { cwd: DIST }).map(path => [
      `/${path.slice(0, -10)}`,
      readFileSync(join(DIST, path), 'utf8'),
    ]),
  )
  const files = new Set(globSync('**/*', { cwd: DIST }).map(path => `/${path}`))
  const ids = new Map(Array.from(pages, ([page, html]) => [page, new Set(matches(html, /\sid="([^"]+)"/g))]))
  const reached = new Set(['/'])
  const broken: string[] = []
  for (const page of reached)
    for (const url of matches(pages.get(page) ?? '', /\s(?:href|src)="([^"]+)"/g)) {
      const { pathname, hash, host } = new URL(url, `http://site${page}`)
      if (host !== 'site') continue
      if (pages.has(pathname)) reached.add(pathname)
      const isThere = pages.has(pathname)
        ? !hash || ids.get(pathname)?.has(decodeURIComponent(hash.slice(1)))
        : files.has(pathname)
      if (!isThere) broken.push(`${page} leads to ${url}`)
    }
  expect(broken).toEqual([])
  expect([...pages.keys()].filter(page => !reached.has(page))).toEqual([])
  const documents = globSync('docs/**/*.md', { cwd: ROOT }).length
  expect(reached.size).toBeGreaterThan(documents)
})

test('nothing is loaded from elsewhere', () => {
  const texts = globSync('**/*.{html,css}', { cwd: DIST }).map(path => readFileSync(join(DIST, path), 'utf8'))
  const loaded =
    /(?:\ssrc="|<link rel="(?:stylesheet|preload)"[^>]*href="|url\(["']?|@import ["'])(?:https?:)?\/\/[^")']+/g
  expect(texts.flatMap(text => text.match(loaded) ?? [])).toEqual([])
})

test.each(SEARCHES)('two clicks from a search: %s', async (words, ...answers) => {
  const page = await openPage(`${origin}/`)
  await page.locator('button[data-open-modal]').click()
  await page.locator('dialog input').fill(words)
  const results = page.locator('.pagefind-ui__result-title a, .pagefind-ui__result-nested .pagefind-ui__result-link')
  await results.first().waitFor()
  const titles = page.locator('.pagefind-ui__result-title a:not(.pagefind-ui__result-nested a)')
  const found = await titles.evaluateAll(links => links.map(link => new URL((link as HTMLAnchorElement).href).pathname))
  const answer = found.slice(0, FIRST).findIndex(address => answers.includes(address))
  expect(found.slice(0, FIRST)[answer], `found ${found.join(' ')}`).toBeDefined()
  await titles.nth(answer).click()
  await page.locator('h1').waitFor()
  expect(answers).toContain(new URL(page.url()).pathname)
})

const KEY_PAGES = [
  '/',
  '/start/',
  '/faq/',
  '/guides/cron/',
  '/stores/redis/',
  '/concepts/lease/',
  '/reference/options/',
  '/operations/dashboard/',
  '/api/',
]

test.each([390, 800, 1280])('no code, table or diagram is cut at %i px', async width => {
  const page = await openPage(`${origin}/`, { viewport: { width, height: 844 } })
  for (const path of KEY_PAGES) {
    await page.goto(`${origin}${path}`)
    const blocks = page.locator('.sl-markdown-content').locator('pre, table, .diagram svg')
    const cut = await blocks.evaluateAll(
      (blocks, pageWidth) =>
        blocks
          .filter(block => {
            const isWide = block.scrollWidth > block.clientWidth + 1 || block.getBoundingClientRect().right > pageWidth
            return isWide && !block.closest('.scrolled')
          })
          .map(block => block.textContent?.slice(0, 50)),
      width,
    )
    expect(cut, path).toEqual([])
  }
})

test('text and code are 800 px wide on a small laptop, and the home page begins with how to install it', async () => {
  const page = await openPage(`${origin}/`, { viewport: { width: 1280, height: 844 } })
  const first = page.locator('.sl-markdown-content pre').first()
  expect(await first.textContent()).toContain('npm i holdfast')
  for (const part of [page.locator('.sl-markdown-content p').first(), first])
    expect((await part.boundingBox())?.width).toBeGreaterThanOrEqual(798)
})

test.each(['light', 'dark'] as const)('on a telephone nothing scrolls sideways: %s', async colorScheme => {
  const page = await openPage(`${origin}/`, { viewport: { width: 390, height: 844 }, colorScheme })
  for (const path of KEY_PAGES) {
    await page.goto(`${origin}${path}`)
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBe(390)
    expect(await page.evaluate(() => document.documentElement.dataset.theme), path).toBe(colorScheme)
  }
})

test('pictures and diagrams are shown', async () => {
  const page = await openPage(`${origin}/operations/dashboard/`)
  const images = page.locator('main img')
  expect(await images.count()).toBe(3)
  for (const image of await images.all()) {
    await image.scrollIntoViewIfNeeded()
    await page.waitForFunction(element => (element as HTMLImageElement).naturalWidth > 0, await image.elementHandle())
  }
  for (const path of ['/concepts/fencing/', '/concepts/lease/', '/concepts/redlock/', '/concepts/time/']) {
    await page.goto(`${origin}${path}`)
    await page.locator('main .diagram svg').waitFor()
  }
})

function matches(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, found = '']) => found.replaceAll('&amp;', '&').replaceAll('&#38;', '&'))
}
