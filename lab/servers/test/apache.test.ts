import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Apache, startApache } from '../apache.ts'

let server: Apache
beforeAll(async () => {
  server = await startApache()
})
afterAll(() => server?.stop())

async function put(name: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(server.url(name), { method: 'PUT', body: 'text', headers })
  await response.arrayBuffer()
  return response.status
}

test('with one worker, of many that write on one condition exactly one does', async () => {
  for (let round = 0; round < 20; round++) {
    const statuses = await Promise.all(Array.from({ length: 8 }, () => put(`file-${round}`, { 'if-none-match': '*' })))
    expect(statuses.toSorted((one, other) => one - other)).toEqual([201, ...Array(7).fill(412)])
  }
})

test('an ETag is a strong one at once, and follows what is in the file', async () => {
  await put('file', {})
  const tag = async (): Promise<string | null> => (await fetch(server.url('file'))).headers.get('etag')
  const before = await tag()
  expect(before).toMatch(/^"/)
  expect(await put('file', { 'if-match': '"other"' })).toBe(412)
  expect(await put('file', { 'if-match': String(before) })).toBe(204)
  expect(await tag()).toBe(before)
})

test('it keeps its files over a restart, and leaves nothing behind', async () => {
  const other = await startApache()
  await put('kept', {})
  await server.restart()
  expect(await (await fetch(server.url('kept'))).text()).toBe('text')
  const { folder } = other
  await other.stop()
  expect(() => readdirSync(folder)).toThrow('ENOENT')
})
