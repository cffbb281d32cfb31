/** Processes of an older version and of this one share a store, as during a rolling upgrade. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startEtcd } from '../../lab/servers/etcd.ts'
import { newFolder } from '../../lab/servers/folder.ts'
import { startMariaDb } from '../../lab/servers/mariadb.ts'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import { connect, type Locks } from '../../src/index.ts'
import { Stack } from '../harnesses/stack.ts'
import { ROOT } from '../script-node.ts'
import { CHANGED, olderVersion } from './older.ts'
import type { Answered, Asked } from './worker.ts'

interface Tested {
  /** Starts the servers. Returns the URL for a test: both versions create the tables, in the order in which they begin. */
  start(stack: Stack): Promise<(test: string) => string>
  /** Are waiters served in order? */
  readonly inOrder: boolean
}

const stores: Readonly<Record<string, Tested>> = {
  sqlite: { inOrder: true, start: async () => run => `sqlite:${join(newFolder('mixed'), `${run}.db`)}` },
  redis: {
    inOrder: true,
    start: async stack => {
      const { port } = stack.use(await startRedis())
      return () => `redis://127.0.0.1:${port}`
    },
  },
  redlock: {
    inOrder: false,
    start: async stack => {
      const servers = await Promise.all([1, 2, 3].map(async () => stack.use(await startRedis())))
      return () => `redlock://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}?maxTtl=5000`
    },
  },
  postgres: {
    inOrder: true,
    start: async stack => {
      const server = stack.use(await startPostgres())
      return run => `${server.url()}?create=true&table=${run}`
    },
  },
  advisory: {
    inOrder: false,
    start: async stack => {
      const server = stack.use(await startPostgres())
      return () => `advisory:${server.url()}`
    },
  },
  mysql: {
    inOrder: true,
    start: async stack => {
      const server = stack.use(await startMariaDb())
      return run => `${server.url()}?create=true&table=${run}`
    },
  },
  etcd: {
    inOrder: true,
    start: async stack => {
      const { port } = stack.use(await startEtcd())
      return () => `etcd://127.0.0.1:${port}`
    },
  },
  zookeeper: {
    inOrder: true,
    start: async stack => {
      const { port } = stack.use(await startZooKeeper())
      return () => `zookeeper://127.0.0.1:${port}`
    },
  },
}

/** One process with one of the versions. */
class Version {
  readonly #child: ChildProcess
  readonly #asked = new Map<number, (answer: Answered) => void>()
  #number = 0

  private constructor(folder: string, url: string) {
    this.#child = fork(join(import.meta.dirname, 'worker.ts'), [folder, url])
    this.#child.on('message', (answer: Answered) => this.#asked.get(answer.number)?.(answer))
    this.#child.on('exit', () => {
      for (const [number, answered] of this.#asked) answered({ number, code: 'ENDED' })
    })
  }

  static async start(folder: string, url: string): Promise<Version> {
    const version = new Version(folder, url)
    cleanups.push(() => version.kill())
    const [ready] = await Promise.race([once(version.#child, 'message'), once(version.#child, 'exit')])
    if (ready !== 'ready') throw new Error(`${folder} does not open ${url}`)
    return version
  }

  ask(verb: Asked['verb'], name: string, id = 'a', limit?: number): Promise<Answered> {
    const number = this.#number++
    return new Promise(resolve => {
      this.#asked.set(number, resolve)
      this.#child.send({ number, verb, name, id, limit } satisfies Asked)
    })
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

let older: string
beforeAll(() => {
  older = olderVersion()
})

describe.each(Object.entries(stores))('%s', (store, { start, inOrder }) => {
  const stack = new Stack()
  let urlOf: (run: string) => string
  beforeAll(async () => {
    urlOf = await start(stack)
  })
  afterAll(() => stack.end())

  describe.each(['older', 'newer'])('the %s version was first', began => {
    const versions = async (run: string): Promise<{ first: Version; second: Version; url: string }> => {
      const url = urlOf(`${run}_${began}`)
      const [one, two] = began === 'older' ? [older, ROOT] : [ROOT, older]
      return { url, first: await Version.start(one, url), second: await Version.start(two, url) }
    }

    test.skipIf(CHANGED.has(store))('exclusion, tokens and the queue hold across versions', async () => {
      const { first, second, url } = await versions('queue')
      const name = `queue, ${began}`
      const waiting = await waitersOf(url, name)
      const tokens = [BigInt((await first.ask('acquire', name)).token ?? 0)]
      expect(await second.ask('try', name, 'b')).toMatchObject({ code: 'BUSY' })

      const granted: string[] = []
      let isHeld = true
      const grants: Promise<void>[] = []
      const queue: readonly (readonly [string, Version])[] = [
        ['1', second],
        ['2', first],
        ['3', second],
        ['4', first],
      ]
      for (const [id, version] of queue) {
        const turn = async (): Promise<void> => {
          const { token, message } = await version.ask('acquire', name, id)
          expect(message).toBeUndefined()
          expect(isHeld, 'held by nobody else').toBe(false)
          isHeld = true
          granted.push(id)
          tokens.push(BigInt(token ?? 0))
          const other = version === first ? second : first
          expect(await other.ask('try', name, 'try')).toMatchObject({ code: 'BUSY' })
          isHeld = false
          expect(await version.ask('release', name, id)).toMatchObject({ ended: 'released' })
        }
        grants.push(turn())
        if (!waiting) continue
        await until(`${id} waits`, async () => (await waiting()) === grants.length, { limit: 20_000, every: 50 })
      }
      isHeld = false
      expect(await first.ask('release', name)).toMatchObject({ ended: 'released' })
      await Promise.all(grants)
      expect(inOrder ? granted : granted.toSorted()).toEqual(['1', '2', '3', '4'])
      expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
      expect(new Set(tokens).size).toBe(5)
    })

    test.skipIf(CHANGED.has(store))(
      'one version takes over from the other after its death, with a higher token',
      async () => {
        const { first, second } = await versions('death')
        const name = `death, ${began}`
        const { token } = await first.ask('acquire', name)
        const next = second.ask('acquire', name)
        await first.kill()
        expect(BigInt((await next).token ?? 0)).toBeGreaterThan(BigInt(token ?? 0))
      },
    )

    test.skipIf(CHANGED.has(store))('the versions share the permits of a semaphore', async () => {
      const { first, second } = await versions('permits')
      const name = `permits, ${began}`
      const held = [await first.ask('acquire', name, 'a', 2), await second.ask('acquire', name, 'a', 2)]
      expect(new Set(held.map(({ slot }) => slot))).toEqual(new Set([0, 1]))
      expect(await first.ask('try', name, 'b', 2)).toMatchObject({ code: 'BUSY' })
      const next = second.ask('acquire', name, 'b', 2)
      expect(await first.ask('release', name)).toMatchObject({ ended: 'released' })
      expect(await next).toMatchObject({ slot: held[0]?.slot })
    })

    test.runIf(CHANGED.has(store))('the other version refuses what the first one holds, with the reason', async () => {
      const { first, second } = await versions('refusal')
      const name = `refusal, ${began}`
      await first.ask('acquire', name)
      for (const verb of ['try', 'acquire'] as const)
        expect(await second.ask(verb, name, verb)).toMatchObject({
          code: 'FORMAT_MISMATCH',
          message: expect.stringContaining('use the same version of Holdfast everywhere'),
        })
      expect(await first.ask('release', name)).toMatchObject({ ended: 'released' })
    })
  })
})

/** Counts the waiters that the current version sees. `undefined` over advisory locks, which show none. */
async function waitersOf(url: string, name: string): Promise<(() => Promise<number>) | undefined> {
  if (url.startsWith('advisory:')) return undefined
  const locks: Locks = await connect(url)
  cleanups.push(() => locks.close())
  return async () => (await locks.inspect(name)).waiters.length
}
