import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { redis } from '../../src/stores/redis/index.ts'
import { sqlite } from '../../src/stores/sqlite/index.ts'
import { closeBrowser, openPage } from './browser.ts'
import { run } from './process.ts'
import { served } from './served.ts'

const XSS = '<img src=x onerror="window.broken = 1"><script>window.broken = 1</script>'

afterAll(closeBrowser)

/** A process that holds a name of a file, or waits for it. Its first line is `token time`. */
const holder = (file: string, owner: string): ReturnType<typeof run> =>
  run(join(import.meta.dirname, 'holder.ts'), file, 'nightly', owner)

// A pause of the machine also delays the page.
const AGAIN = { retry: 2 }

test('two processes compete, and the page shows the takeover within a second', AGAIN, async () => {
  const file = join(newFolder('browser'), 'leases.db')
  const first = holder(file, 'first')
  await first.line
  const second = holder(file, 'second')
  const { locks, address } = await served(sqlite(file))
  await until('the second waits', async () => (await locks.inspect('nightly')).waiters.length === 1)
  const page = await openPage(address)
  const row = page.locator('#rows .holder')
  await row.getByText('first').waitFor()
  // Without a renewal that was seen, the lease may have a fixed term.
  await page.evaluate(() => {
    const find = (resolve: () => void, before = 0): void => {
      const left = Number.parseFloat(document.querySelector('#rows td.due')?.textContent ?? '')
      if (before > 0 && left > before + 0.3) resolve()
      else requestAnimationFrame(() => find(resolve, left))
    }
    return new Promise<void>(resolve => find(resolve))
  })
  // The page says when it shows the new holder, by the clock of this machine.
  const shown = page.evaluate(() => {
    const find = (resolve: (at: number) => void): void => {
      const isShown = document.querySelector('#rows')?.textContent?.includes('second')
      if (isShown) resolve(Date.now())
      else requestAnimationFrame(() => find(resolve))
    }
    return new Promise<number>(find)
  })
  first.child.kill('SIGKILL')
  const granted = Number((await second.line).split(' ')[1])
  expect((await shown) - granted).toBeLessThan(1_000)
  await page.locator('#changes').getByText('nightly: first → second, no longer renewed').waitFor()
})

test('a run that succeeded is shown, and is no held name', async () => {
  const { locks, address } = await served(sqlite(join(newFolder('browser'), 'leases.db')))
  await locks.once('job', { within: 600_000 }, async () => {})
  const page = await openPage(address)
  await page.locator('#rows tbody').filter({ hasText: 'job' }).getByText('ran', { exact: true }).waitFor()
  expect(await page.locator('#counts dd').allTextContents()).toEqual(['0', '0', '0'])
})

test('one stuck holder among 200 names is reached with one click', async () => {
  const { locks, address } = await served()
  const names = Array.from({ length: 200 }, (_, index) => `invoices-${index}`)
  for (const name of names) await locks.acquire(name, { owner: `of ${name}` })
  void locks.acquire('invoices-17', { owner: 'next' }).catch(() => {})
  const page = await openPage(address)
  await page.locator('#lead').getByText('invoices-17').click()
  await page.locator('#one dd').getByText('of invoices-17').waitFor()
  await page.locator('#one').locator('.queue').getByText('next').waitFor()
})

test('while the store is away the page says what it does not know, and goes on when it is back', async () => {
  const server = await startRedis({ appendonly: 'always' })
  onTestFinished(() => server.stop())
  const { locks, address } = await served(redis(new Redis(server.port, { lazyConnect: true })))
  await locks.acquire('nightly')
  const page = await openPage(address)
  await page.locator('#rows').getByText('nightly').click()
  await page.locator('#one').getByText('Held by').waitFor()
  await server.kill()
  await page.locator('#say').getByText('The store cannot be read').waitFor()
  await page.evaluate(() => {
    location.hash = 'other'
  })
  await page.locator('#one').getByText('Unknown: it was not seen').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('#say').getByText('The store cannot be read').waitFor()
  expect(await page.locator('#counts dd').allTextContents()).toEqual(Array(3).fill('unknown'))
  expect(await page.getByText('cannot be read').count(), 'it is said once').toBe(1)
  await server.start()
  await page.locator('#say').getByText('no holder seems stuck').waitFor()
  expect(await page.locator('#counts dd').allTextContents()).toEqual(['0', '0', '1'])
})

test.each(['light', 'dark'] as const)('on a telephone nothing scrolls sideways: %s', async colorScheme => {
  const { locks, address } = await served()
  const long = 'a-name-without-a-place-to-break-'.repeat(7)
  await locks.acquire(long, { owner: long, note: long })
  await locks.acquire('nightly')
  const page = await openPage(address, { viewport: { width: 390, height: 844 }, colorScheme })
  const width = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth)
  await page.locator('#rows').getByText('nightly').waitFor()
  expect(await width()).toBe(390)
  await page.locator('#rows button', { hasText: /^a-name-.*…/ }).click()
  await page.locator('#one').getByText('Held by').waitFor()
  expect(await width()).toBe(390)
})

test('with 1,000 names the page stays smooth', AGAIN, async () => {
  const { locks, address } = await served()
  const names = Array.from({ length: 1_000 }, (_, index) => `job-${index}`)
  await Promise.all(names.map(name => locks.acquire(name, { note: `of ${name}` })))
  const page = await openPage(address)
  await page.locator('#rows tbody').nth(999).waitFor()
  const times = await page.evaluate(async () => {
    const found: number[] = []
    const observer = new PerformanceObserver(list => found.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })
    await new Promise(resolve => setTimeout(resolve, 10_000))
    return found
  })
  // A long task takes 50 ms or more. There are twenty looks, of which a busy machine may delay a few.
  expect(times.length).toBeLessThan(5)
})

test('XSS: what is injected into names, owners and notes does not run', async () => {
  const { locks, address } = await served()
  await locks.acquire(XSS, { owner: XSS, note: XSS })
  const page = await openPage(address)
  await page.locator('#rows button', { hasText: /^<img.*…/ }).click()
  await page.locator('#one').getByText('Held by').waitFor()
  expect(await page.evaluate(() => 'broken' in window)).toBe(false)
  expect(await page.locator('#all img, #one img').count()).toBe(0)
})

test('CSP: an injected script, handler, style and request are blocked, and the page works on', async () => {
  const { locks, address } = await served()
  await locks.acquire('nightly')
  const injected =
    '<script>window.broken = 1</script><img src="x" onerror="window.broken = 2"><style>body { display: none }</style>'
  const page = await openPage(address, {}, html => html.replace('<body>', `<body>${injected}`))
  await page.locator('#rows').getByText('nightly').waitFor()
  const seen = await page.evaluate(async () => ({
    isBroken: 'broken' in window,
    display: getComputedStyle(document.body).display,
    foreign: await fetch('http://127.0.0.2/').catch(() => 'refused'),
  }))
  expect(seen).toEqual({ isBroken: false, display: 'block', foreign: 'refused' })
})

test('CSP: HTML of a string is refused', async () => {
  const { address } = await served()
  const page = await openPage(address)
  const injection = page.evaluate(() => {
    document.body.innerHTML = '<b>broken</b>'
  })
  await expect(injection).rejects.toThrow('TrustedHTML')
})

test('clickjacking: another page cannot frame it', async () => {
  const { address } = await served()
  const html = `<iframe src="${address}"></iframe>`
  const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const page = await openPage(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
  await until('the frame is refused', () => page.frames()[1]?.url().startsWith('chrome-error:'))
})

test('CSRF: a page of another origin cannot break a lease', async () => {
  const { locks, address } = await served()
  const lease = await locks.acquire('nightly')
  const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>other</p>'))
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const page = await openPage(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
  const outcome = await page.evaluate(
    async ([target, token]) => {
      const url = `${target}?api=break&name=nightly&typed=nightly&token=${token}`
      const send = (init: RequestInit): Promise<string> =>
        fetch(url, init).then(
          answer => answer.type,
          () => 'refused',
        )
      return [
        await send({ method: 'POST', mode: 'no-cors' }),
        await send({ method: 'POST', headers: { 'x-holdfast-change': '1' } }),
      ]
    },
    [address, String(lease.token)],
  )
  expect(outcome).toEqual([expect.stringMatching(/opaque|refused/), 'refused'])
  expect((await locks.inspect('nightly')).holders[0]?.token).toBe(lease.token)
})
