import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { createLocks, type Locks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { type Access, type Dashboard, dashboard } from './dashboard.ts'

let locks: Locks
let board: Dashboard
let port: number
let judged: string[]
let responses: ServerResponse[]
let ended: Promise<unknown>
/** What `authorize` waits for. */
let session: Promise<void>
const sockets: Socket[] = []

beforeEach(async () => {
  locks = createLocks(memory(), { ttl: 600_000 })
  judged = []
  responses = []
  session = Promise.resolve()
  board = dashboard(locks, {
    authorize: async ({ request }): Promise<Access> => {
      judged.push(request.url)
      await session
      return 'operate'
    },
  })
  const server = createServer((request, response) => {
    responses.push(response)
    board.handler(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  ended = once(server, 'close')
  // It closes when its last connection has ended.
  server.once('connection', () => server.close())
})

afterEach(async () => {
  vi.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
  await board[Symbol.asyncDispose]()
  await locks.close({ grace: 0 })
})

function send(request: string): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  sockets.push(socket)
  socket.write(request)
  return socket
}

test.each(['h/?api=break&name=job&typed=job&z=', 'h?x', 'h#x', 'h\\x', 'a@b', 'h/%2e%2e/', 'h:x', ''])(
  'a Host header of %j is no part of the request: it is refused',
  async host => {
    const lease = await locks.acquire('job')
    const change = 'Sec-Fetch-Site: same-origin\r\nX-Holdfast-Change: 1\r\nContent-Length: 0\r\nConnection: close'
    const answer = await text(send(`POST /locks HTTP/1.1\r\nHost: ${host}\r\n${change}\r\n\r\n`))
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(judged).toEqual([])
    expect((await locks.inspect('job')).holders[0]?.token).toBe(lease.token)
  },
)

test.each(['host.example', 'host:8080', '127.0.0.1:80', '[::1]:80', 'under_score'])(
  'a Host header of %j is one',
  async host => {
    const answer = await text(send(`GET /locks HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`))
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(judged).toEqual([new URL(`http://${host}/locks`).href])
  },
)

/** A viewer that has stopped reading the events. */
async function stalled(): Promise<void> {
  const long = 'x'.repeat(240)
  for (let index = 0; index < 5_000; index += 1)
    await locks.acquire(`${long}${index}`, { owner: long, note: long, heartbeat: false })
  send('GET /?api=events HTTP/1.1\r\nHost: h\r\n\r\n').pause()
  await until('it stalls', () => (responses[0]?.writableLength ?? 0) > 0)
}

test('a viewer that does not read is cut off when the dashboard is disposed of', async () => {
  await stalled()
  await board[Symbol.asyncDispose]()
  expect(responses[0]?.destroyed).toBe(true)
  await ended
})

test('a viewer that does not read does not outlive a withdrawal of its access', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const stalls = stalled()
  while ((responses[0]?.writableLength ?? 0) === 0) await new Promise(setImmediate)
  await vi.advanceTimersByTimeAsync(62_000)
  await Promise.all([stalls, ended])
})

/** `authorize` waits until the returned function is called. */
function delaySession(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  session = promise
  return resolve
}

test('a viewer that leaves before it is authorized leaves no stream, whose error would end the process', async () => {
  const { body } = await board.fetch(new Request('http://h/?api=events'))
  const events = body?.getReader()
  const authorize = delaySession()
  const viewer = send('GET /?api=events HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('it is judged', () => judged.length === 2)
  viewer.destroy()
  await until('it has left', () => responses[0]?.destroyed === true)
  authorize()
  const errors: unknown[] = []
  const note = (error: unknown): void => void errors.push(error)
  process.on('uncaughtException', note)
  for (let look = 0; look < 3; look += 1) await events?.read() // the same looks fill a stream that nobody reads
  await board[Symbol.asyncDispose]()
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate)
  process.off('uncaughtException', note)
  expect(errors).toEqual([])
})

test('a request of web standards that is aborted before it is authorized gets no stream', async () => {
  const viewer = new AbortController()
  const authorize = delaySession()
  const answer = board.fetch(new Request('http://h/?api=events', { signal: viewer.signal }))
  viewer.abort()
  authorize()
  expect((await answer).body).toBeNull()
})
