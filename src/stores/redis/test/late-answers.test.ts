/** Answers and messages that come in another order than they were sent. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, hold, look, signal, storeOf } from './support.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(() => server.call('FLUSHALL'))

/** One connection through the proxy. What the server sends can be delayed. */
class Link {
  /** What the client sent. */
  sent = ''
  readonly client: Socket
  #delayed: Buffer[] | undefined

  constructor(client: Socket, port: number) {
    this.client = client
    const upstream = connect({ host: '127.0.0.1', port, noDelay: true })
    client.on('data', piece => {
      this.sent += piece.toString('latin1')
      upstream.write(piece)
    })
    upstream.on('data', piece => (this.#delayed ? this.#delayed.push(piece) : client.write(piece)))
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  }

  delay(): void {
    this.#delayed ??= []
  }

  deliver(): void {
    for (const piece of this.#delayed ?? []) this.client.write(piece)
    this.#delayed = undefined
  }
}

/** A proxy that knows its connections. */
class Links implements Disposable {
  readonly all: Link[] = []
  readonly #server: Server = createServer({ noDelay: true }, client => this.all.push(new Link(client, server.port)))

  async open(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** The last one on which the client sent this. */
  with(sent: RegExp): Link {
    return this.all.findLast(link => sent.test(link.sent)) ?? expect.fail(`nobody sent ${sent}`)
  }

  [Symbol.dispose](): void {
    this.#server.close()
    for (const { client } of this.all) client.destroy()
  }
}

test.for(['answer', 'message'])(
  'a handoff from before the last busy answer is not told, if its %s comes first',
  async first => {
    using links = new Links()
    await using far = storeOf(new Redis({ port: await links.open(), lazyConnect: true }))
    await using near = storeOf(new Redis({ port: server.port, lazyConnect: true }))
    await far.watch?.(claimOf('to subscribe'), () => {}, signal)
    await hold(far, claimOf('to connect'))
    const [messages, answers] = [links.with(/\nsubscribe\r/i), links.with(/\neval(sha)?\r/i)]
    const holder = claimOf('a')
    await hold(near, holder)

    const claim = claimOf('a', { ttl: 1_000, queue: true, handoff: true })
    for (const link of [messages, answers]) link.delay()
    const limit = new AbortController()
    const one = far.acquire(claim, limit.signal)
    one.catch(() => {}) // on a machine that hung it gets no answer in time, before it is awaited below
    await until('it waits', async () => (await look(near, { name: 'a' })).length === 2, { every: 1 })
    await near.release(holder, signal)
    expect(await look(near, { name: 'a' })).toMatchObject([{ state: 'held', owner: claim.owner }])
    await until('another connection replaces the slow one', () => links.all.length > 2)
    limit.abort('given up')
    await until('the lease has ended', async () => (await acquire(near, claimOf('a', { ttl: 60_000 }))).held)
    expect(await far.acquire(claim, signal)).toMatchObject({ held: false })
    let wakes = 0
    await far.watch?.(claim, () => (wakes += 1), signal)
    if (first === 'answer') {
      answers.deliver()
      expect(await one).toMatchObject({ held: false })
    }
    messages.deliver()
    await until('it is woken', () => wakes > 0)
    if (first === 'message') {
      expect(await far.acquire(claim, signal)).toMatchObject({ held: false })
      answers.deliver()
      expect(await one).toMatchObject({ held: false })
    }
    expect(await far.acquire(claim, signal)).toMatchObject({ held: false })
  },
)
