import { request } from 'node:http'
import { expect, test, vi } from 'vitest'
import { holding, type Running, start } from './holdfast.ts'

async function served(...options: string[]): Promise<{ address: URL; running: Running }> {
  const running = start(['dashboard', ...options])
  await vi.waitFor(() => expect(running.out).toContain('Ctrl-C'), 20_000)
  return { address: new URL(running.out.split('\n')[0] ?? ''), running }
}

test('holdfast dashboard shows holders only to who has the token, and ends with a signal', async () => {
  await holding('nightly', '--owner', 'alice')
  const { address, running } = await served('--read-only')
  const token = address.searchParams.get('token')
  expect((await fetch(address)).status).toBe(200)
  expect((await fetch(address.origin)).status).toBe(403)
  expect((await fetch(`${address}&api=events`)).status).toBe(403)
  const headers = { authorization: `Bearer ${token}`, 'sec-fetch-site': 'same-origin', 'x-holdfast-change': '1' }
  const events = await fetch(`${address.origin}/?api=events`, { headers })
  let text = ''
  for await (const part of events.body ?? []) {
    text += Buffer.from(part).toString()
    if (text.includes('alice')) break
  }
  expect(text).toContain('"name":"nightly"')
  const change = `${address.origin}/?api=break&name=nightly&typed=nightly`
  expect((await fetch(change, { method: 'POST', headers })).status).toBe(403)
  running.child.kill('SIGTERM')
  expect((await running.ended).code).toBe(0)
})

test('DNS rebinding: holdfast dashboard refuses an unknown host, even with the token', async () => {
  const { address } = await served()
  const status = await new Promise((resolve, reject) => {
    const headers = { host: `evil.example:${address.port}` }
    request(address, { headers }, response => resolve(response.resume().statusCode))
      .on('error', reject)
      .end()
  })
  expect(status).toBe(421)
})
