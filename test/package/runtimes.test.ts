import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { blocks, hurried } from '../samples.ts'
import { Project, pack, ROOT, succeed } from './project.ts'

/** What `script/setup --runtimes` installs, with the arguments that run a program. */
const RUNTIMES: readonly [name: string, program: string, ...args: string[]][] = [
  ['Bun', 'bun/bin/bun'],
  ['Deno', 'deno/deno', 'run', '--allow-all', '--no-prompt', '--node-modules-dir=manual'],
]

const folder = mkdtempSync(join(tmpdir(), 'holdfast-runtimes-'))
let project: Project

beforeAll(async () => {
  project = await Project.withPackages(await pack(folder))
  project.linkDependencies()
  project.copy('runtime.mjs')
}, 300_000)
afterAll(() => {
  project?.remove()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(RUNTIMES)('%s', (_, program, ...args) => {
  const run = async (...rest: string[]): Promise<string> => {
    const path = join(ROOT, '.tools', program)
    if (!existsSync(path)) throw new Error('it is not installed: run script/setup --runtimes')
    const { stdout, stderr } = succeed(await project.run(path, [...args, ...rest]))
    expect(stderr).toBe('')
    return stdout
  }
  const lines = ['second none', 'waiter true', 'abort TimeoutError', 'loss LEASE_LOST', 'thread INVALID_ARGUMENT', '']

  test('runs the quick start', async () => {
    const [sample = ''] = blocks(readFileSync(join(ROOT, 'README.md'), 'utf8'), 'ts')
    project.write('quick.mjs', hurried(sample))
    expect(await run('quick.mjs')).toMatch(/^process \d+ holds reports, token \d+\n$/)
  })

  test('keeps leases in SQLite, and refuses a heartbeat thread', async () => {
    expect((await run('runtime.mjs', `sqlite:${program.replaceAll('/', '-')}.db`)).split('\n')).toEqual(lines)
  })

  test('keeps leases in Redis', async () => {
    const server = await startRedis()
    try {
      expect((await run('runtime.mjs', server.url)).split('\n')).toEqual(lines)
    } finally {
      await server.stop()
    }
  })

  test('keeps leases in PostgreSQL', async () => {
    const server = await startPostgres()
    try {
      expect((await run('runtime.mjs', server.url())).split('\n')).toEqual(lines)
    } finally {
      await server.stop()
    }
  })
})
