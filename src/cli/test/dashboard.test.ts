import { request } from 'node:http'
import { expect, test, vi } from 'vitest'
import { holding, type Running, start } from './holdfast.ts'

async function served(...options: string[]): Promise<{ address: URL; running: Running }> {
  const running = start(['dashboard', ...options])
  await vi.waitFor(() => expect(running.out).toContain('Ctrl-C'), 20_000)
  return { address: new URL(running.out.split('\n')[0] ?? ''), running }
}

/** The page, and the headers of the requests that it sends once its address was opened. */
async function opened(address: URL): Promise<{ page: string; headers: Record<string, string> }> {
  const cookie = (await fetch(address)).headers.get('set-cookie')?.split(';')[0] ?? ''
  const headers = { cookie, 'sec-fetch-site': 'same-origin', 'x-holdfast-change': '1' }
  return { page: `${address.origin}${address.pathname}`, headers }
}

test('holdfast dashboard shows holders only to who opened its address, and ends with a signal', async () => {
  await holding('nightly', '--owner', 'alice')
  const { address, running } = await served('--read-only')
  const { page, headers } = await opened(address)
  for (const refused of [address.origin, page, `${address}x`, `${page}?api=events`, `${address}&api=events`]) {
    const answer = await fetch(refused)
    expect([answer.status, answer.headers.get('set-cookie')], refused).toEqual([403, null])
  }
  expect((await fetch(page, { headers })).status).toBe(200)
  const events = await fetch(`${page}?api=events`, { headers })
  let text = ''
  for await (const part of events.body ?? []) {
    text += Buffer.from(part).toString()
    if (text.includes('alice')) break
  }
  expect(text).toContain('"name":"nightly"')
  const change = `${page}?api=break&name=nightly&typed=nightly&token=1`
  expect((await fetch(change, { method: 'POST', headers })).status).toBe(403)
  running.child.kill('SIGTERM')
  expect((await running.ended).code).toBe(0)
})

test('the cookie of one holdfast dashboard gives no access to another', async () => {
  const [one, other] = await Promise.all([served(), served()])
  const { headers } = await opened(one.address)
  const { page } = await opened(other.address)
  expect((await fetch(page, { headers })).status).toBe(403)
  expect((await fetch(`${page}?api=events`, { headers })).status).toBe(403)
})

test('DNS rebinding: holdfast dashboard refuses an unknown host, even with the token or the cookie', async () => {
  const { address } = await served()
  const { page, headers } = await opened(address)
  for (const target of [address, page]) {
    const answer = await new Promise<unknown>((resolve, reject) => {
      request(target, { headers: { ...headers, host: `evil.example:${address.port}` } }, response => {
        resolve([response.resume().statusCode, response.headers['set-cookie']])
      })
        .on('error', reject)
        .end()
    })
    expect(answer).toEqual([421, undefined])
  }
})
