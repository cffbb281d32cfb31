import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { on } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { stateOf } from '../../../lab/servers/process.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { accounts } from './accounts.ts'

const DEPOSITOR = fileURLToPath(new URL('./depositor.ts', import.meta.url))
const flags = process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']

let postgres: PostgresServer
let redis: RedisServer
let mariaDb: MariaDbServer

beforeAll(async () => {
  ;[postgres, redis, mariaDb] = await Promise.all([startPostgres(), startRedis(), startMariaDb()])
})
afterAll(() => Promise.all([postgres.stop(), redis.stop(), mariaDb.stop()]))

class Depositor {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string[]>

  constructor(...args: string[]) {
    this.#child = spawn(process.execPath, [...flags, DEPOSITOR, ...args])
    this.#child.stderr.pipe(process.stderr)
    this.#lines = on(createInterface({ input: this.#child.stdout }), 'line', { close: ['close'] })
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  async says(): Promise<string | undefined> {
    return (await this.#lines.next()).value?.[0]
  }

  go(): void {
    this.#child.stdin.write('go\n')
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGSTOP')
    await until('it stands still', () => stateOf(this.#child.pid ?? 0) === 'T')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }
}

describe.each(Object.keys(accounts))('over %s, a holder that is paused past its ttl and then writes', engine => {
  // What each of them says to have paid in is 100.
  test.each([
    {
      how: 'naive',
      says: 'written',
      outcome: 'overwrites what the next one wrote, so that of 200 paid in 100 are lost',
    },
    { how: 'fenced', says: 'refused STALE_TOKEN true', outcome: 'is refused, so that what was paid in is there' },
  ])('$how: $outcome', async ({ how, says }) => {
    const folder = newFolder('paused')
    const place = engine === 'redis' ? redis.url : join(folder, 'account.db')
    const url = /^(postgres|mysql)/.test(engine) ? await database(engine, how) : place
    const account = accounts[engine]?.(url)
    await account?.create()
    const args = [engine, url, `sqlite:${join(folder, 'leases.db')}`, how]

    const first = new Depositor(...args)
    expect(await first.says()).toBe('read 0')
    await first.stop()
    first.go() // it is there to be read once it runs again
    const next = new Depositor(...args)
    expect(await next.says()).toBe('read 0')
    next.go()
    expect(await next.says()).toBe('written')
    first.resume()
    expect(await first.says()).toBe(says)

    expect(await account?.read()).toBe(100)
    await account?.close()
  })
})

async function database(engine: string, how: string): Promise<string> {
  const name = `${engine.replace('.', '')}_${how}_${randomBytes(4).toString('hex')}`
  const server = engine === 'mysql' ? mariaDb : postgres
  await server.query(`create database ${name}`)
  return server.url().replace(/\w+$/, name)
}
