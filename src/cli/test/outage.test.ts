import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { startTmux, type Tmux } from '../../../lab/servers/tmux.ts'
import { connect } from '../../index.ts'
import { HOLDFAST, start } from './holdfast.ts'

// What a view shows while its store is away, and after that.

let server: RedisServer

beforeAll(async () => {
  server = await startRedis({ appendonly: 'always' })
})

afterAll(() => server.stop())

/** A name is held by a lease that is not renewed. */
async function hold(name: string): Promise<void> {
  await using locks = await connect(server.url, { ttl: 600_000, heartbeat: false, owner: 'alice' })
  await locks.acquire(name)
}

async function shown(): Promise<Tmux> {
  const tmux = await startTmux({ columns: 100, env: { HOLDFAST_STORE: server.url } })
  await tmux.press(`${HOLDFAST.map(word => `'${word}'`).join(' ')} top`, 'Enter')
  return tmux
}

test('ls --watch warns once when the store goes away, and goes on when it is back', async () => {
  const empty = start(['ls', 'none-', '--watch'], { env: { HOLDFAST_STORE: server.url } })
  const watching = start(['ls', '--watch'], { env: { HOLDFAST_STORE: server.url } })
  await hold('first')
  await watching.prints(/held +first/)
  await using locks = await connect(server.url)
  await locks.break('first')
  await watching.prints(/free +first/)
  await server.kill()
  await watching.reports('the store cannot be read')
  await new Promise(resolve => setTimeout(resolve, 3_500)) // two more looks that fail
  await server.start()
  await watching.reports('the store can be read again')
  expect(watching.err.match(/cannot be read/g)).toHaveLength(1)
  await hold('second')
  await watching.prints(/held +second/)
  await empty.reports('the store can be read again')
})

test('top says what it does not know while the store is away, and shows it when it is back', async () => {
  await hold('job')
  await server.kill()
  await using tmux = await shown()
  const away = await tmux.shows('The store cannot be read')
  expect(away, 'nothing was read, so nothing is known').not.toMatch(/No name is held|\b0 held/)
  expect(away).toContain('It is not known which names are held')
  await server.start()
  await tmux.shows(/job +alice/)
  await tmux.press('Enter')
  await tmux.shows('Held by')
  await server.kill()
  await tmux.shows('The store cannot be read')
  await server.start()
  await tmux.shows('Nobody waits, and no holder seems stuck')
})
