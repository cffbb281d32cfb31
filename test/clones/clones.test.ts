import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { startRedis } from '../../lab/servers/redis.ts'

const [CLONE, GENERATOR] = ['./clone.ts', './generator.ts'].map(path => fileURLToPath(new URL(path, import.meta.url)))
const flags = process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']

interface Answers {
  readonly drawn: string
  readonly lease: boolean
  readonly permit: boolean
  readonly runs: boolean
}

test.each([
  { engine: 'SQLite', start: async () => `sqlite:${join(newFolder('clones'), 'leases.db')}` },
  {
    engine: 'Redis',
    start: async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      return `redis://${server.host}:${server.port}`
    },
  },
])('of two processes that were resumed from one snapshot of memory one holds, over $engine', async ({ start }) => {
  const url = await start()
  const { drawn, ...first } = await clone(url)
  expect(first).toEqual({ lease: true, permit: true, runs: true })
  expect(await clone(url)).toEqual({ drawn, lease: false, permit: false, runs: false })
})

/** A process whose random generator has the state of all other clones. It holds until the end of the test. */
async function clone(url: string): Promise<Answers> {
  const child = spawn(process.execPath, [...flags, '--import', `${GENERATOR}`, `${CLONE}`, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const { value } = await on(createInterface({ input: child.stdout }), 'line', { close: ['close'] }).next()
  return JSON.parse(value[0])
}
