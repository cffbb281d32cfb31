import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { withEvidence } from './evidence.ts'

/** `HOLDFAST_ALONGSIDE_MINUTES=2` shows less. */
const DURATION = Number(process.env.HOLDFAST_ALONGSIDE_MINUTES ?? 10) * 60_000
const LONGEST_PAUSE = 1_500

const REDLOCKS = ['old redlock', 'old @sesamecare-oss/redlock', 'new redlock alongside', 'new redlock alongside']
const MUTEXES = ['old redis-semaphore', 'old redis-semaphore', 'new redis-semaphore alongside']

interface Span {
  readonly kind: string
  readonly id: string
  readonly from: bigint
  to: bigint
}

let servers: RedisServer[]

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
})
afterAll(() => Promise.all(servers.map(server => server.stop())))

/** A process that is started again when it was killed. */
class Worker {
  readonly #args: readonly string[]
  #child: ChildProcess

  constructor(...args: string[]) {
    this.#args = args
    this.#child = this.#start()
  }

  async kill(): Promise<void> {
    await this.end()
    this.#child = this.#start()
  }

  async pause(duration: number): Promise<void> {
    this.#child.kill('SIGSTOP')
    await sleep(duration)
    this.#child.kill('SIGCONT')
  }

  abandon(): void {
    this.#child.kill('SIGKILL')
  }

  async end(): Promise<void> {
    const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null
    if (isOver) throw new Error(`${this.#args[0]} ended by itself`)
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  #start(): ChildProcess {
    const script = join(import.meta.dirname, 'worker.ts')
    return spawn(process.execPath, [...process.execArgv, script, ...this.#args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
}

test.concurrent.for([
  { what: 'redlock and holdfast-redlock, one server', count: 1, kinds: REDLOCKS },
  { what: 'redlock and holdfast-redlock, three servers', count: 3, kinds: REDLOCKS },
  { what: 'redis-semaphore and holdfast-redis-semaphore, one server', count: 1, kinds: MUTEXES },
  { what: 'redis-semaphore and holdfast-redis-semaphore, three servers', count: 3, kinds: MUTEXES },
  { what: 'holdfast-redlock with and without the old lock', count: 1, kinds: ['new redlock alongside', 'new redlock'] },
])(
  'no two processes hold one lock: $what',
  { timeout: DURATION + 60_000 },
  ({ what, count, kinds }, { onTestFinished, annotate }) =>
    withEvidence(what, async file => {
      const ports = servers.slice(0, count).map(({ port }) => port)
      const fleet = kinds.map(kind => new Worker(kind, ports.join(','), what, file))
      onTestFinished(() => {
        for (const worker of fleet) worker.abandon()
      })
      await until(
        'one of each kind has held it',
        () => new Set(spansOf(file).map(({ kind }) => kind)).size === new Set(kinds).size,
        {
          limit: 30_000,
          every: 100,
        },
      )
      const faults = { kill: 0, pause: 0 }
      const end = performance.now() + DURATION
      while (performance.now() < end) {
        const worker = fleet[Math.floor(Math.random() * fleet.length)] as Worker
        const fault = Math.random() < 0.3 ? 'kill' : 'pause'
        await worker[fault](Math.random() * LONGEST_PAUSE)
        faults[fault] += 1
        await sleep(Math.random() * 500)
      }
      await Promise.all(fleet.map(worker => worker.end()))
      const spans = spansOf(file)
      const found = overlaps(spans)
      const { kill, pause } = faults
      await annotate(`${spans.length} grants, ${kill} kills, ${pause} pauses, ${found.length} overlaps`)
      expect(found).toEqual([])
      for (const kind of kinds)
        expect(spans.filter(span => span.kind === kind).length, kind).toBeGreaterThan(DURATION / 20_000)
    }),
)

/** From when to when each acquisition was held for certain, by the clock that the processes share. */
function spansOf(file: string): Span[] {
  const spans = new Map<string, Span>()
  for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const [kind = '', id = '', at = ''] = line.split('\t')
    const now = BigInt(at)
    const span = spans.get(id)
    if (span) span.to = now
    else spans.set(id, { kind, id, from: now, to: now })
  }
  return [...spans.values()].sort((a, b) => Number(a.from - b.from))
}

function overlaps(spans: readonly Span[]): string[] {
  const found: string[] = []
  let last: Span | undefined
  for (const span of spans) {
    if (last && span.from <= last.to)
      found.push(`${last.kind} held until ${last.to}, and ${span.kind} from ${span.from}: ${last.to - span.from} ns`)
    if (!last || span.to > last.to) last = span
  }
  return found
}

test('two spans that overlap are found', () => {
  const span = (from: bigint, to: bigint): Span => ({ kind: 'a', id: `${from}`, from, to })
  expect(overlaps([span(1n, 5n), span(6n, 9n), span(8n, 8n), span(9n, 10n)])).toHaveLength(2)
})
