import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, test } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { NODE } from '../../cli/test/holdfast.ts'
import { connect, createLocks, type Locks } from '../../index.ts'
import { advisory } from '../../stores/postgres/index.ts'
import { type During, enginesWith } from './engines.ts'

const CHILD = fileURLToPath(new URL('./once-child.ts', import.meta.url))
const TTL = 2_000

/** Milliseconds: no test run is slower, and ZooKeeper can keep it. */
const LONG = 20_000
const SHORT = 1_000

const engines = enginesWith('trustRestarted=true')

/** A process that runs the job `name`, from when its work has begun. */
class Child {
  readonly #process: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<unknown[]>

  constructor(url: string, name: string) {
    const [node = '', ...options] = NODE
    this.#process = spawn(node, [...options, CHILD, url, name, String(LONG), String(TTL)])
    this.#process.stderr.pipe(process.stderr)
    this.#lines = on(createInterface({ input: this.#process.stdout }), 'line', { close: ['close'] })
  }

  async line(): Promise<string> {
    return `${(await this.#lines.next()).value}`
  }

  async die(): Promise<void> {
    const ended = once(this.#process, 'close')
    this.#process.kill('SIGKILL')
    await ended
  }

  /** Resolves to what `once` did, when the process has ended. */
  async succeed(): Promise<unknown> {
    const ended = once(this.#process, 'close')
    this.#process.stdin.end('succeed\n')
    const outcome = JSON.parse(await this.line())
    await ended
    return outcome
  }

  [Symbol.dispose](): void {
    this.#process.kill('SIGKILL')
  }
}

/** Starts a process, and resolves when it works. */
async function working(url: string, name: string, { onTestFinished }: During): Promise<Child> {
  const child = new Child(url, name)
  onTestFinished(() => child[Symbol.dispose]())
  expect(await child.line()).toBe('works')
  return child
}

const TITLE = 'over %s, a success counts for within, a failure and a death do not'

test.for(Object.keys(engines))(TITLE, { timeout: 180_000 }, async (engine, context) => {
  const url = await (engines[engine] as (typeof engines)[string])(context)
  const locks: Locks = await connect(url, { owner: 'me', ttl: TTL })
  context.onTestFinished(() => locks.close())
  const run = (name: string, options: object = {}, result: unknown = 'mine') =>
    locks.once(name, { within: LONG, ...options }, async () => result)

  const first = await working(url, 'succeeds', context)
  expect(await run('succeeds'), 'while it runs elsewhere').toMatchObject({ why: 'held', holder: { owner: 'child' } })
  const waits = run('succeeds', { wait: 60_000 })
  expect(await first.succeed()).toEqual({ ran: true })
  expect(await waits, 'after it waited').toMatchObject({ ran: false, why: 'ran', holder: { owner: 'child' } })
  expect(await run('succeeds'), 'after its process has ended').toMatchObject({ ran: false, why: 'ran' })
  expect((await locks.inspect('succeeds')).holders).toEqual([])

  const fails = locks.once('fails', { within: LONG }, () => Promise.reject(new Error('disk full')))
  await expect(fails).rejects.toThrow('disk full')
  expect(await run('fails'), 'after a failure').toEqual({ ran: true, result: 'mine' })

  const second = await working(url, 'dies', context)
  const follows = run('dies', { wait: 60_000 })
  await second.die()
  expect(await follows, 'after a death').toEqual({ ran: true, result: 'mine' })
  expect(await run('dies')).toMatchObject({ ran: false, why: 'ran', holder: { owner: 'me' } })

  const began = performance.now()
  expect(await run('again', { within: SHORT })).toMatchObject({ ran: true })
  await until('it runs again', async () => (await run('again', { within: SHORT })).ran)
  expect(performance.now() - began, 'not before within').toBeGreaterThan(0.9 * SHORT)
})

test('over advisory locks, which end with their connection, it is refused with the reason', async () => {
  await using locks = createLocks(advisory(new pg.Pool({ port: 1 })))
  await expect(locks.once('a', { within: LONG }, async () => {})).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message:
      'within needs a store that keeps a lease without its process, and knows when it ends, which postgres advisory does not: use another store',
  })
})
