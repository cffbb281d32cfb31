import dns from 'node:dns'
import { getEventListeners, once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Connection } from './connection.ts'
import { Disconnected, Expired, Refused } from './failure.ts'
import { Writer } from './jute.ts'
import { checkStep, exists, getChildren, multi, type Request } from './protocol.ts'

const way = { tls: undefined, auth: undefined }
const NEW = { timeout: 1_000, id: 0n, password: new Uint8Array(16), lastZxid: 0n }
const PATIENCE = 5_000
const hello = new Writer().int(0).int(1_000).long(7n).buffer(new Uint8Array(16)).bool(false).frame()
const stat = (to: Writer): Writer =>
  to.long(1n).long(2n).long(0n).long(0n).int(0).int(0).int(0).long(7n).int(0).int(0).long(1n)

let server: Server | undefined
afterEach(() => void server?.close())

/** A server that sends these bytes in answer to everything: first to the handshake, then to each request. */
async function opened(...answers: Buffer[]): Promise<Connection> {
  const say = (socket: Socket): void => {
    const left = [...answers]
    socket.on('data', () => socket.write(left.shift() ?? ''))
    socket.on('error', () => {})
  }
  server = createServer(say).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Connection.open({ host: '127.0.0.1', port }, way, NEW, PATIENCE)
}

function answer(xid: number, error = 0, body: (to: Writer) => Writer = to => to): Buffer {
  return body(new Writer().int(xid).long(5n).int(error)).frame()
}

async function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    error => error,
  )
}

describe('a connection', () => {
  test('has the session, the timeout and the last transaction of the server', async () => {
    const connection = await opened(hello, answer(1, 0, stat))
    expect([connection.id, connection.timeout]).toEqual([7n, 1_000])
    const read = { czxid: 1n, mzxid: 2n, version: 0, aclVersion: 0, owner: 7n, length: 0, pzxid: 1n }
    expect(await connection.send(exists('/a'))).toEqual(read)
    expect(connection.lastZxid).toBe(5n)
    connection.end(new Disconnected('over'))
  })

  test('ends when its signal aborts, and leaves no listener at it otherwise', async () => {
    ;(await opened(hello)).end(new Disconnected('over'))
    const controller = new AbortController()
    const { signal } = controller
    const open = async (): Promise<Connection> => {
      const { port } = (server as Server).address() as AddressInfo
      return Connection.open({ host: '127.0.0.1', port }, way, NEW, PATIENCE, PATIENCE, signal)
    }
    ;(await open()).end(new Disconnected('over'))
    await vi.waitFor(() => expect(getEventListeners(signal, 'abort')).toEqual([]))
    const connection = await open()
    controller.abort()
    expect(connection.isOpen).toBe(false)
  })

  test('rejects with the error of the server, and stays usable', async () => {
    const connection = await opened(hello, answer(1, -101), answer(2, 0, stat))
    expect(await settled(connection.send(exists('/a')))).toMatchObject({ code: -101 })
    expect(connection.isOpen).toBe(true)
    expect((await connection.send(exists('/a'))).czxid).toBe(1n)
    connection.end(new Disconnected('over'))
  })

  test.each([
    ['another request', answer(2, 0, stat)],
    ['no request', Buffer.concat([answer(1, 0, stat), answer(2, 0, stat)])],
    ['a record that is cut off', answer(1, 0, to => to.long(1n))],
    ['a frame of nothing', new Writer().frame()],
    ['a frame of 2 GB', Buffer.from([0x7f, 0xff, 0xff, 0xff])],
    ['a negative frame', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ])('ends when the server answers %s', async (_, bytes) => {
    const connection = await opened(hello, bytes)
    const ended = new Promise<void>(resolve => {
      connection.onEnd = resolve
    })
    await settled(connection.send(exists('/a')))
    await ended
    expect(await settled(connection.send(exists('/a')))).toBeInstanceOf(Disconnected)
  })

  test.each([
    ['too few results', (to: Writer) => to.int(-1).bool(true).int(-1)],
    ['a result of another step', (to: Writer) => to.int(2).bool(false).int(0).int(-1).bool(true).int(-1)],
    ['too many results', (to: Writer) => to.int(13).bool(false).int(0).int(13).bool(false).int(0)],
  ])('S12: ends when the server answers a transaction with %s, which is not taken for done', async (_, results) => {
    const connection = await opened(hello, answer(1, 0, results))
    expect(await settled(connection.send(multi([checkStep('/a')])))).toBeInstanceOf(Disconnected)
  })

  test('says that the session is over when the server does', async () => {
    const over = new Writer().int(0).int(0).long(0n).buffer(new Uint8Array(16)).bool(false).frame()
    expect(await settled(opened(over))).toBeInstanceOf(Expired)
    const connection = await opened(hello, answer(1, -112))
    expect(await settled(connection.send(exists('/a')))).toBeInstanceOf(Expired)
  })

  test('takes a step that failed because the session is over or has moved as any request that does', async () => {
    const failed = (...errors: number[]): Buffer =>
      answer(1, 0, to => {
        for (const error of errors) to.int(-1).bool(false).int(error).int(error)
        return to.int(-1).bool(true).int(-1)
      })
    const steps = multi([checkStep('/a'), checkStep('/b')])
    for (const [errors, reason] of [
      [[0, -112], Expired],
      [[-112, -2], Expired],
      [[-118, -2], Disconnected],
    ] as const) {
      const connection = await opened(hello, failed(...errors))
      expect(await settled(connection.send(steps))).toBeInstanceOf(reason)
      expect(connection.isOpen).toBe(false)
      server?.close()
    }
  })

  test('ends with the error when the server refuses the password', async () => {
    const connection = await opened(hello, answer(-4, -115))
    expect(await settled(connection.send(exists('/a')))).toEqual(new Refused(-115))
  })

  test('reports why each address of a host was not reached', async () => {
    const addresses = [
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.2', family: 4 },
    ]
    const lookup = (...asked: unknown[]): void =>
      (asked.at(-1) as (error: null, found: unknown) => void)(null, addresses)
    using spy = vi.spyOn(dns, 'lookup').mockImplementation(lookup as never)
    syncBuiltinESMExports()
    const opening = Connection.open({ host: 'two.test', port: 1 }, way, NEW, PATIENCE)
    await expect(opening).rejects.toThrow(/ECONNREFUSED 127.0.0.1:1; .*ECONNREFUSED 127.0.0.2:1/)
    spy.mockRestore()
    syncBuiltinESMExports()
  })

  test('reports events between answers', async () => {
    const event = answer(-1, 0, to => to.int(2).int(3).string('/a'))
    const connection = await opened(hello, Buffer.concat([event, answer(1, 0, stat)]))
    const told: string[] = []
    connection.onEvent = path => told.push(path)
    await connection.send(exists('/a'))
    expect(told).toEqual(['/a'])
    connection.end(new Disconnected('over'))
  })

  test('settles every request whatever bytes the server sends, in any pieces', async () => {
    const good = Buffer.concat([answer(1, 0, stat), answer(2, 0, to => stat(to.int(1).string('x')))])
    const spoiled = fc
      .tuple(fc.nat(good.length), fc.uint8Array({ maxLength: 40 }), fc.boolean())
      .map(([at, bytes, cut]) => {
        const rest = cut ? Buffer.alloc(0) : good.subarray(at)
        return Buffer.concat([good.subarray(0, at), bytes, rest])
      })
    const requests: Request<unknown>[] = [exists('/a'), getChildren('/a'), multi([])]
    await fc.assert(
      fc.asyncProperty(spoiled, async bytes => {
        const connection = await opened(hello, bytes)
        const all = Promise.all(requests.map(request => settled(connection.send(request))))
        setTimeout(() => connection.end(new Disconnected('enough')), 20)
        for (const error of await all) {
          if (error !== undefined) expect([Disconnected, Expired, Refused]).toContain((error as Error).constructor)
        }
        server?.close()
      }),
      { numRuns: 60 },
    )
  })
})
