import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { connect } from '../../src/index.ts'
import { closeBrowser, openPage } from './browser.ts'
import { run } from './process.ts'

const MAIN = join(import.meta.dirname, '../../src/cli/main.ts')

afterAll(closeBrowser)

/** The address that `holdfast dashboard` prints, and a lease that it can break. */
async function started(): Promise<{ address: string; isHeld(): Promise<boolean>; token: bigint }> {
  const store = `sqlite:${join(newFolder('browser'), 'leases.db')}`
  const locks = await connect(store)
  onTestFinished(() => locks.close({ grace: 0 }))
  const { token } = await locks.acquire('nightly', { ttl: 600_000, heartbeat: false })
  const address = await run(MAIN, 'dashboard', '--store', store).line
  return { address, token, isHeld: async () => (await locks.inspect('nightly')).holders[0]?.token === token }
}

/** Another page, by its address, and the cookies of the requests for it, by path. */
async function foreign(
  html = 'other',
): Promise<{ port: number; cookies: Map<string | undefined, string | undefined> }> {
  const cookies = new Map<string | undefined, string | undefined>()
  const server = createServer(({ headers, url }, response) => {
    cookies.set(url, headers.cookie)
    response.setHeader('content-type', 'text/html').end(html)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, cookies }
}

const isWatching = (page: Page): Promise<void> => page.locator('#state').getByText('Watched since').waitFor()
const noAccess = (page: Page): Promise<void> => page.getByText('You have no access').waitFor()

test('a reload and another tab keep the access, and the token does not stay in the address', async () => {
  const { address } = await started()
  const page = await openPage(address)
  await isWatching(page)
  expect(page.url()).toBe(address.split('?')[0])
  await page.reload()
  await isWatching(page)
  const second = await page.context().newPage()
  await second.goto(`${page.url()}#nightly`)
  await second.locator('#one').getByText('Held by').waitFor()
  await second.reload()
  await second.locator('#one').getByText('Held by').waitFor()
  const script = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length])
  expect(script, 'no script can read it').toEqual(['', 0, 0])
  const stranger = await openPage(page.url())
  await noAccess(stranger)
})

test('who comes by a link of another site keeps the access, too', async () => {
  const { address } = await started()
  const { port } = await foreign(`<a href="${address}">the dashboard</a>`)
  const page = await openPage(`http://localhost:${port}/`)
  await page.getByText('the dashboard').click()
  await isWatching(page)
  await page.reload()
  await isWatching(page)
})

test('no other server of this machine is sent the cookie', async () => {
  const { address } = await started()
  const { port, cookies } = await foreign()
  const page = await openPage(address)
  await isWatching(page)
  const { host, pathname } = new URL(page.url())
  await page.goto(`http://127.0.0.1:${port}/`)
  expect([cookies.has('/'), cookies.get('/')]).toEqual([true, undefined])
  // The browser would send it to this path, which nobody else knows.
  await page.goto(`http://127.0.0.1:${port}${pathname}`)
  expect(cookies.get(pathname)).toMatch(/^holdfast=/)
  expect((await page.context().cookies(`http://${host}${pathname}`))[0]).toMatchObject({
    ...{ httpOnly: true, sameSite: 'Strict', path: pathname, expires: -1 },
  })
})

test.each(['localhost', '127.0.0.1'])(
  'CSRF: a page at another port of %s gets no data and breaks no lease',
  async host => {
    const { address, isHeld, token } = await started()
    const { port } = await foreign()
    const page = await openPage(address)
    await isWatching(page)
    const target = page.url()
    await page.goto(`http://${host}:${port}/`)
    const outcome = await page.evaluate(
      async ([to, of]) => {
        const send = (query: string, init: RequestInit): Promise<string> =>
          fetch(`${to}?api=${query}`, { credentials: 'include', ...init }).then(
            answer => answer.type,
            () => 'refused',
          )
        const change = `break&name=nightly&typed=nightly&token=${of}`
        return [
          await send('name&name=nightly', {}),
          await send(change, { method: 'POST', mode: 'no-cors' }),
          await send(change, { method: 'POST', headers: { 'x-holdfast-change': '1' } }),
        ]
      },
      [target, `${token}`],
    )
    expect(outcome).toEqual(['refused', expect.stringMatching(/opaque|refused/), 'refused'])
    expect(await isHeld()).toBe(true)
    // A form may send the browser there, but not the header.
    await page.evaluate(
      ([to, of]) => {
        const form = document.createElement('form')
        form.method = 'post'
        form.action = `${to}?api=break&name=nightly&typed=nightly&token=${of}`
        document.body.append(form)
        form.submit()
      },
      [target, `${token}`],
    )
    await noAccess(page)
    expect(await isHeld()).toBe(true)
  },
)

test('clickjacking: a page of the same machine cannot frame it, even with the cookie', async () => {
  const { address } = await started()
  const page = await openPage(address)
  await isWatching(page)
  const { port } = await foreign(`<iframe src="${page.url()}"></iframe>`)
  await page.goto(`http://127.0.0.1:${port}/`)
  await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/)
})
