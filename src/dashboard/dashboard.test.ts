import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test, vi } from 'vitest'
import { createLocks, type Locks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { type Access, type Dashboard, dashboard } from './dashboard.ts'

const XSS = '<img src=x onerror=alert(1)></script><script>alert(1)</script>'
const SAME = { 'sec-fetch-site': 'same-origin', 'x-holdfast-change': '1' }
const URL_OF_PAGE = 'http://localhost/locks'
const open: AsyncDisposable[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]()
})

function board(access: Access = 'operate'): { locks: Locks; shown: Dashboard } {
  const locks = createLocks(memory(), { ttl: 30_000 })
  const shown = dashboard(locks, { authorize: () => access })
  open.push({ [Symbol.asyncDispose]: () => locks.close({ grace: 0 }) }, shown)
  return { locks, shown }
}

function breaking(
  shown: Dashboard,
  headers: Record<string, string>,
  { typed = 'job', token = '' }: { typed?: string; token?: bigint | string } = {},
): Promise<Response> {
  const query = `?api=break&name=job&typed=${typed}&token=${token}`
  return shown.fetch(new Request(URL_OF_PAGE + query, { method: 'POST', headers }))
}

interface Overview {
  readonly lost: number | null
  readonly names: readonly Record<string, unknown>[]
  readonly changes: readonly Record<string, unknown>[]
  readonly troubles: readonly string[]
  readonly store: string
}

/** Reads events until one is as wanted. */
async function seen(response: Response, wanted: (overview: Overview) => boolean): Promise<Overview> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of response.body ?? []) {
    const events = (text + decoder.decode(part, { stream: true })).split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const overview = JSON.parse(event.slice('data: '.length)) as Overview
      if (wanted(overview)) return overview
    }
  }
  throw new Error('the events ended')
}

test('authorize is required', () => {
  const locks = createLocks(memory())
  open.push(locks)
  expect(() => dashboard(locks, {} as never)).toThrow('dashboard needs authorize')
})

test.each(['', '?api=events', '?api=name&name=job'])('without access nothing is shown: %s', async query => {
  const { shown } = board('none')
  expect((await shown.fetch(new Request(URL_OF_PAGE + query))).status).toBe(403)
})

test.each([
  [
    'a browser that navigates',
    { 'sec-fetch-dest': 'document' },
    'text/html; charset=utf-8',
    'open the address that it printed',
  ],
  ['an old browser', { accept: 'text/html,*/*;q=0.8' }, 'text/html; charset=utf-8', 'open the address that it printed'],
  ['a script', { accept: '*/*', 'sec-fetch-dest': 'empty' }, 'application/json', '"error":"You have no access'],
])('without access, %s is told so in its own form', async (_, headers, type, text) => {
  const answer = await board('none').shown.fetch(
    new Request(URL_OF_PAGE, { headers: headers as Record<string, string> }),
  )
  expect(answer.status).toBe(403)
  expect(answer.headers.get('content-type')).toBe(type)
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await answer.text()).toContain(text)
})

test('an authorize that throws gives no access', async () => {
  const { locks } = board()
  const shown = dashboard(locks, { authorize: () => Promise.reject(new Error('no session')) })
  open.push(shown)
  expect((await shown.fetch(new Request(URL_OF_PAGE))).status).toBe(403)
})

test('HEAD of the events starts no stream, because nobody would end it', async () => {
  const { shown } = board('read')
  const answer = await shown.fetch(new Request(`${URL_OF_PAGE}?api=events`, { method: 'HEAD' }))
  expect(answer).toMatchObject({ status: 200, body: null })
  expect(answer.headers.get('content-type')).toBe('text/event-stream')
})

test('who may only read cannot break a lease', async () => {
  const { locks, shown } = board('read')
  const lease = await locks.acquire('job')
  expect((await breaking(shown, SAME, lease)).status).toBe(403)
  expect((await locks.inspect('job')).holders[0]?.token).toBe(lease.token)
})

test.each([
  ['from another site', { ...SAME, 'sec-fetch-site': 'cross-site' }],
  ['from another host of the site', { ...SAME, 'sec-fetch-site': 'same-site' }],
  ['without Sec-Fetch-Site', { 'x-holdfast-change': '1' }],
  ['without the header', { 'sec-fetch-site': 'same-origin' }],
])('CSRF: a change %s is refused', async (_, headers) => {
  const { locks, shown } = board()
  const lease = await locks.acquire('job')
  expect((await breaking(shown, headers as Record<string, string>, lease)).status).toBe(403)
  expect((await locks.inspect('job')).holders[0]?.token).toBe(lease.token)
})

test('over plain HTTP, of which a browser does not say that it is the page, the answer says what to do', async () => {
  const answer = await breaking(board().shown, { 'x-holdfast-change': '1' })
  expect(await answer.text()).toContain('serve the page over HTTPS')
})

test('clickjacking: no page may frame it, and only its own script runs', async () => {
  const { headers } = await board().shown.fetch(new Request(URL_OF_PAGE))
  const policy = headers.get('content-security-policy')
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
  expect(headers.get('x-frame-options')).toBe('DENY')
})

test('XSS: names, notes and owners are data, never part of the page', async () => {
  const { locks, shown } = board()
  await locks.acquire(XSS, { note: XSS, owner: XSS })
  const events = await shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  expect(events.headers.get('x-content-type-options')).toBe('nosniff')
  const { names } = await seen(events, overview => overview.names.length === 1)
  expect(names[0]).toMatchObject({ name: XSS, note: XSS, owner: XSS })
  const page = await (await shown.fetch(new Request(`${URL_OF_PAGE}?name=${encodeURIComponent(XSS)}`))).text()
  expect(page).not.toContain('alert(1)')
  expect(page).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/)
})

test('the page is one file of at most 50 KB compressed, without external resources', async () => {
  const page = await (await board().shown.fetch(new Request(URL_OF_PAGE))).text()
  expect(gzipSync(page).length).toBeLessThan(50_000)
  expect(page).not.toMatch(/(src|href)="(?!data:)/)
})

test('over a server of Node, it shows a change of holder and the queue', async () => {
  const { locks, shown } = board()
  const server = createServer(shown.handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push({ [Symbol.asyncDispose]: async () => void server.close() })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const events = seen(await fetch(`${address}?api=events`), ({ changes }) => changes.length > 0)
  const waiting = seen(await fetch(`${address}?api=events`), ({ names }) => names[0]?.waiters === 1)
  const first = await locks.acquire('job', { owner: 'a' })
  const second = locks.acquire('job', { owner: 'b' })
  expect((await waiting).names[0]).toMatchObject({ name: 'job', owner: 'a', token: `${first.token}` })
  await first.release()
  await second
  expect((await events).changes[0]).toMatchObject({ name: 'job', from: 'a', to: 'b' })
  const one = await (await fetch(`${address}?api=name&name=job`)).json()
  expect(one).toMatchObject({ state: 'held', waiters: [], leases: [{ owner: 'b' }, { owner: 'a' }] })
})

test('a shared name is one row that opens to its holders, of which one or all are broken', async () => {
  const { locks, shown } = board()
  const semaphore = locks.semaphore('job', { limit: 5 })
  const permits = [await semaphore.acquire({ owner: 'a', note: 'first' }), await semaphore.acquire({ permits: 4 })]
  const waiting = [semaphore.acquire({ permits: 2 }), semaphore.acquire()]
  for (const each of waiting) each.catch(() => {})
  const events = (): Promise<Response> => shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  const { names } = await seen(await events(), each => each.names[0]?.waiters === 2)
  expect(names).toMatchObject([{ name: 'job', owner: '5 of 5', token: null, waiters: 2 }])
  expect(names[0]?.slots).toMatchObject([{ title: 'slot 0', owner: 'a' }, { title: 'slots 1-4' }])
  const one = await shown.fetch(new Request(`${URL_OF_PAGE}?api=name&name=job`))
  const page = (await one.json()) as Record<string, unknown>
  expect(page.leases).toMatchObject([
    { slots: 'slot 0', owner: 'a', note: 'first', token: `${permits[0]?.token}` },
    { slots: 'slots 1-4', token: `${permits[1]?.token}` },
  ])
  expect(page).toMatchObject({ use: '5 of 5', waiters: [{ want: 'for 2 slots' }, { want: '' }] })
  expect((await breaking(shown, SAME)).status, 'no lease was chosen').toBe(400)
  expect((await breaking(shown, SAME, { token: permits[1]?.token ?? '' })).status).toBe(200)
  permits[0]?.assertHeld()
  const later = await Promise.all(waiting)
  expect(later.map(({ slots }) => slots)).toEqual([[1, 2], [3]])
  expect((await breaking(shown, SAME, { token: `all ${later.at(-1)?.token}` })).status).toBe(200)
  expect((await locks.inspect('job')).holders).toEqual([])
})

test('authorize sees the host of the request, whatever its path is', async () => {
  const seenUrls: string[] = []
  const locks = createLocks(memory())
  const authorize = ({ request }: { readonly request: Request }): Access => {
    seenUrls.push(request.url)
    return 'read'
  }
  const shown = dashboard(locks, { authorize })
  open.push(locks, shown)
  const server = createServer(shown.handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push({ [Symbol.asyncDispose]: async () => void server.close() })
  const { port } = server.address() as AddressInfo
  for (const path of ['//evil.example/a', 'http://evil.example/a']) {
    const [answer] = (await once(get({ port, host: '127.0.0.1', path, agent: false }), 'response')) as [IncomingMessage]
    answer.resume()
    expect(answer.statusCode, path).toBe(path.startsWith('//') ? 200 : 400)
  }
  expect(seenUrls).toEqual([`http://127.0.0.1:${port}//evil.example/a`])
})

test('a look is written once for all viewers of the same access, because a thousand would stop the process', async () => {
  const { shown } = board('read')
  const first = async (): Promise<Uint8Array | undefined> => {
    const { body } = await shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
    return (await body?.getReader().read())?.value
  }
  const [a, b] = await Promise.all([first(), first()])
  expect(a?.length).toBeGreaterThan(0)
  expect(a).toBe(b)
})

test('no proxy holds events back', async () => {
  const { headers } = await board('read').shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  expect(headers.get('x-accel-buffering')).toBe('no')
  expect(headers.get('cache-control')).toBe('no-store, no-transform')
})

test('after its disposal nothing is shown that would be old', async () => {
  const { shown } = board()
  await shown[Symbol.asyncDispose]()
  for (const query of ['', '?api=events', '?api=name&name=job'])
    expect((await shown.fetch(new Request(URL_OF_PAGE + query))).status, query).toBe(503)
})

test.each([
  ['redis://cache:6379', 'redis://cache:6379'],
  ['redis://app:s3cr@t?/x@cache:6379/1?tls=1', 'redis://cache:6379/1'],
  ['postgres://db/app?user=app&password=s3cr@t', 'postgres://db/app'],
  ['redlock://u:s3cret@a,u:s3cret@b/1', 'redlock://b/1'],
  ['the leases of billing', 'the leases of billing'],
])('it says which store it shows, without what is secret: %s', async (store, text) => {
  const locks = createLocks(memory())
  const shown = dashboard(locks, { authorize: () => 'read', store })
  open.push(locks, shown)
  const events = await shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  expect((await seen(events, () => true)).store).toBe(text)
})

test('losses are unknown, not 0, to a process without leases', async () => {
  const events = await board().shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  expect((await seen(events, () => true)).lost).toBeNull()
})

test('one stuck holder among 200 names is marked', async () => {
  const { locks, shown } = board()
  const at = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 60_000)
  await locks.acquire('job-17', { ttl: 3_600_000 })
  at.mockRestore()
  for (let index = 0; index < 200; index += 1) if (index !== 17) await locks.acquire(`job-${index}`)
  const events = await shown.fetch(new Request(`${URL_OF_PAGE}?api=events`))
  const { names, troubles } = await seen(events, overview => overview.names.length === 200)
  expect(troubles).toEqual([expect.stringContaining('others of job-#')])
  expect(names[0]).toMatchObject({ name: 'job-17', troubles: [0] })
})
