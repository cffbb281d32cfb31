import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Clock } from '../../contract/time.ts'
import { Expired } from './failure.ts'
import { Frames, Reader, Writer } from './jute.ts'
import { exists, multi } from './protocol.ts'
import { Session } from './session.ts'

const TIMEOUT = 3_000
const WRITE = multi([])
const listener = { recover: async () => {}, onEvent: () => {}, onDisconnect: () => {} }

/** Says yes to everything, for one session after the other. */
let server: Server
/** The answer to the next connection. */
let granted: { id: bigint; timeout: number }
let sockets: Socket[]
let now: number
const clock: Clock = { now: () => now, wall: () => now, after: () => () => {} }

beforeEach(async () => {
  granted = { id: 7n, timeout: TIMEOUT }
  sockets = []
  now = 1_000
  server = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => void server.close())

function serve(socket: Socket): void {
  const frames = new Frames(1_000)
  let isGreeted = false
  sockets.push(socket)
  socket.on('error', () => {})
  socket.on('data', piece => {
    for (const frame of frames.add(piece)) {
      const to = new Writer()
      if (isGreeted) to.int(new Reader(frame).int()).long(1n).int(0).int(-1).bool(true).int(-1).buffer(Buffer.alloc(80))
      else to.int(0).int(granted.timeout).long(granted.id).buffer(new Uint8Array(16)).bool(false)
      isGreeted = true
      socket.write(to.frame())
    }
  })
}

function session(): Session {
  const { port } = server.address() as AddressInfo
  const ensemble = { servers: [{ host: '127.0.0.1', port }], tls: undefined, auth: undefined }
  return new Session(ensemble, TIMEOUT, clock, listener)
}

test('a transaction proves only that the leader received one sent a third of a session earlier', async () => {
  const own = session()
  const connection = await own.connection()
  expect(own.safeUntil).toBe(1_000 + TIMEOUT)
  for (const [at, heard] of [
    [1_500, 1_000], // too soon after the handshake to prove anything
    [1_999, 1_000],
    [2_400, 1_000], // proves the handshake, not what left at 1,500
    [2_600, 1_500],
    [3_300, 1_999],
  ] as const) {
    now = at
    await own.send(connection, WRITE)
    expect(own.safeUntil, `at ${at}`).toBe(heard + TIMEOUT)
  }
  now = 9_000
  await own.send(connection, exists('/a'))
  expect(own.safeUntil, 'what only the follower answers proves nothing').toBe(1_999 + TIMEOUT)
  await own.close(false)
})

test('a session that the leader may not have heard from recently is attached again', async () => {
  const own = session()
  const first = await own.connection(2_000)
  now += 1_001
  expect(await own.connection(1_999)).toBe(first)
  expect(await own.connection(2_000)).not.toBe(first)
  expect(first.isOpen).toBe(false)
  expect(own.safeUntil).toBe(now + TIMEOUT)
  await own.close(false)
})

test('a session is over when the server has another, or none', async () => {
  for (const other of [
    { id: 8n, timeout: TIMEOUT },
    { id: 0n, timeout: 0 },
  ]) {
    granted = { id: 7n, timeout: TIMEOUT }
    const own = session()
    await own.connection()
    granted = other
    now += TIMEOUT
    await expect(own.connection(1)).rejects.toBeInstanceOf(Expired)
    expect(own.isOver).toBe(true)
    await expect(own.connection()).rejects.toBeInstanceOf(Expired)
    await own.close(false)
  }
})

test('incomplete requests are cleaned up before a connection is used, and otherwise there is none', async () => {
  let repairs = 0
  const recover = async (): Promise<void> => {
    repairs += 1
    if (repairs === 1) throw new Error('not yet')
  }
  const { port } = server.address() as AddressInfo
  const ensemble = { servers: [{ host: '127.0.0.1', port }], tls: undefined, auth: undefined }
  const own = new Session(ensemble, TIMEOUT, clock, { ...listener, recover })
  await expect(own.connection()).rejects.toThrow('not yet')
  expect((await own.connection()).isOpen).toBe(true)
  expect(repairs).toBe(2)
  await own.close(false)
})

test('closing does not wait for a server that accepts and never answers', async () => {
  const { setTimeout: original } = globalThis
  const limitIsOver = vi.fn<(action: () => void) => void>(action => action())
  const timers = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((action: () => void, delay: number) => original(() => limitIsOver(action), delay)) as never)
  server.removeListener('connection', serve)
  const accepted = once(server, 'connection')
  const own = session()
  const opening = own.connection().catch((error: unknown) => error)
  const [socket] = await accepted
  await own.close(true)
  expect(await opening).toMatchObject({ code: 'CLOSED' })
  expect(limitIsOver).not.toHaveBeenCalled()
  timers.mockRestore()
  socket.destroy()
})
