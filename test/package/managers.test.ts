import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { blocks, hurried } from '../samples.ts'
import { installTools, Project, pack, ROOT, succeed, TOOLS } from './project.ts'

interface Manager {
  readonly name: string
  /** Adds packages to a project: a program, and its first arguments. */
  readonly add: readonly string[]
  /** Runs Node with the packages. @default Node itself */
  readonly node?: readonly string[]
}

const PNPM = join(TOOLS, 'node_modules/pnpm/bin/pnpm.cjs')
const YARN = join(TOOLS, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js')

const MANAGERS: readonly Manager[] = [
  { name: 'npm', add: ['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund'] },
  { name: 'pnpm', add: [process.execPath, PNPM, 'add', '--prefer-offline', '--ignore-workspace'] },
  { name: 'Yarn with Plug and Play', add: [process.execPath, YARN, 'add'], node: [process.execPath, YARN, 'node'] },
]

const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const [quickStart = ''] = blocks(readFileSync(join(ROOT, 'README.md'), 'utf8'), 'ts').map(hurried)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-managers-'))
let tarball: string
let server: RedisServer

beforeAll(async () => {
  await installTools()
  tarball = await pack(folder)
  server = await startRedis()
}, 300_000)
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(MANAGERS)('$name', ({ add: [command = '', ...add], node: [node = process.execPath, ...args] = [] }) => {
  let project: Project
  const run = async (file: string, ...rest: string[]): Promise<string> => {
    const { stdout, stderr } = succeed(await project.run(node, [...args, file, ...rest]))
    expect(stderr).toBe('')
    return stdout
  }

  beforeAll(async () => {
    project = new Project()
    project.write('package.json', JSON.stringify({ name: 'user', private: true, type: 'commonjs' }))
    project.write('yarn.lock', '') // else Yarn looks for a project above
    const packages = [`holdfast@file:${tarball}`, `ioredis@${devDependencies.ioredis}`]
    succeed(await project.run(command, [...add, ...packages], { YARN_ENABLE_TELEMETRY: '0' }))
  }, 120_000)
  afterAll(() => project?.remove())

  test.each(['import', 'require'])('the quick start runs with %s', async kind => {
    const file = `quick.${kind === 'import' ? 'mjs' : 'cjs'}`
    project.write(file, kind === 'import' ? quickStart : required(quickStart))
    expect(await run(file)).toMatch(/^process \d+ holds reports, token \d+\n$/)
  })

  test('connect finds the client of Redis that the project has', async () => {
    const program = "import { connect } from 'holdfast'; const locks = await connect(process.argv[2])\n"
    project.write(
      'client.mjs',
      `${program}console.log(await locks.using('a', ({ name }) => name)); await locks.close()`,
    )
    expect(await run('client.mjs', server.url)).toBe('a\n')
  })
})

/** A module as CommonJS. */
function required(module: string): string {
  const body = module.replaceAll(/^import (\{.*\}) from ('.*')$/gm, (_, names: string, from: string) => {
    return `const ${names.replaceAll(' as ', ': ')} = require(${from})`
  })
  return `async function main() {\n${body}\n}\nmain()`
}
