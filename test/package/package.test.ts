import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../lab/servers/redis.ts'
import { hurried, samplesOfPages } from '../samples.ts'
import { isFull } from '../tier.ts'
import { installTools, type Outcome, Project, pack, ROOT, succeed } from './project.ts'

/** Bytes. */
const LARGEST_PACKED = 830_000
/** Megabytes. */
const LARGEST_UNPACKED = 2.7
const folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'))
let tarball: string
let others: readonly [redlock: string, semaphore: string, lab: string]
let project: Project

beforeAll(async () => {
  await installTools()
  tarball = await pack(folder)
  // Built by that. The samples of the documentation import them as well.
  others = await Promise.all([
    pack(folder, 'holdfast-redlock'),
    pack(folder, 'holdfast-redis-semaphore'),
    pack(folder, 'holdfast-lab'),
  ])
  project = await Project.withPackages(tarball)
  // The first run downloads Jest and two compilers.
}, 300_000)
afterAll(() => {
  project?.remove()
  rmSync(folder, { recursive: true, force: true })
})

test('the tarball has the build, the licence and the documentation, and nothing else', async () => {
  const { stdout } = succeed(await project.run('tar', ['-tzf', tarball]))
  const files = stdout.trim().split('\n')
  // Error messages name pages of docs: once package.json has a repository, as links.
  const pages = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).repository ? [] : ['docs/stores/redis.md']
  const expected =
    /^package\/(dist\/.*\.(js|cjs|d\.ts|d\.cts)|docs\/.*\.md|dashboards\/(alerts\.yml|grafana\.json)|package\.json|LICENSE|README\.md|CHANGELOG\.md)$/
  expect(files.filter(file => !expected.test(file))).toEqual([])
  expect(files).toEqual(
    expect.arrayContaining(
      ['LICENSE', 'README.md', 'CHANGELOG.md', 'dist/cli/main.js', ...pages].map(file => `package/${file}`),
    ),
  )
})

test('it stays small', async () => {
  const { stdout } = succeed(await project.run('tar', ['-tzvf', tarball]))
  const sizes = Array.from(stdout.matchAll(/^\S+ \S+ +(\d+) /gm), ([, size]) => Number(size))
  const megabytes = sizes.reduce((sum, size) => sum + size, 0) / 1e6
  console.log(`packed ${(statSync(tarball).size / 1e3).toFixed(0)} kB, unpacked ${megabytes.toFixed(2)} MB`)
  expect(statSync(tarball).size).toBeLessThanOrEqual(LARGEST_PACKED)
  expect(megabytes).toBeLessThanOrEqual(LARGEST_UNPACKED)
})

test.each(['mjs', 'cjs'])('a stack trace in .%s names the functions and shows one statement', async kind => {
  const get = (name: string, from: string): string =>
    kind === 'mjs' ? `import { ${name} } from '${from}'` : `const { ${name} } = require('${from}')`
  const lines = [get('createLocks', 'holdfast'), get('memory', 'holdfast/memory'), "createLocks(memory()).acquire('')"]
  project.write(`trace.${kind}`, lines.join('\n'))
  const { code, stderr } = await project.node(`trace.${kind}`)
  expect(code).toBe(1)
  expect(stderr).toMatch(/^LeaseError: the name of a lease is empty/m)
  for (const name of ['invalid', 'checkName', 'StoreLocks.acquire']) expect(stderr).toMatch(`${name} (`)
  expect(Math.max(...stderr.split('\n').map(line => line.length))).toBeLessThan(300)
})

test('the tarball has no code of the lab', () => {
  const dist = join(project.folder, 'node_modules/holdfast/dist')
  const scripts = globSync('**/*.{js,cjs}', { cwd: dist }).map(path => readFileSync(join(dist, path), 'utf8'))
  const sources = scripts.flatMap(text => Array.from(text.matchAll(/^\/\/#region (.*)$/gm), ([, path = '']) => path))
  expect(sources).toContain('src/cli/prove.ts')
  expect(sources.filter(path => path.startsWith('lab/'))).toEqual([])
})

test('it installs no other package', async () => {
  const { stdout } = succeed(await project.run('npm', ['ls', '--all', '--parseable']))
  expect(stdout.trim().split('\n')).toHaveLength(2)
})

/** Complete programs of the documentation, as a reader pastes them. */
const pasted: readonly [page: string, block: number, says: RegExp][] = [
  ['README.md', 0, /^process \d+ holds reports, token \d+\n$/],
  ['docs/start.md', 0, /^(process \d+, token \d+, step \d+ of 20\n){20}$/],
  ['docs/start.md', 2, /^A-1001 is written with token \d+\nA-1002 is refused: LeaseError: .*\n$/],
]

test.each(pasted)('the program of %s, block %i, runs as pasted', async (page, block, says) => {
  const blocks = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code)
  project.write('pasted.mjs', hurried(blocks[block] ?? ''))
  const { stdout, stderr } = succeed(await project.node('pasted.mjs'))
  expect(stdout).toMatch(says)
  expect(stderr).toBe('')
})

/** The sample on tests needs a test runner, and the one on registers a database: the conformance suite runs it. */
const ELSEWHERE = ['docs/guides/testing.md', 'docs/guides/write-a-register.md']
const guides = globSync('docs/guides/*.md', { cwd: ROOT }).filter(page => !ELSEWHERE.includes(page))

// The second run finds the data of the first.
test.each(guides)('the sample of %s runs as .mts, twice', async page => {
  const [, sample = ''] = /^```ts\n(.*?)^```/ms.exec(readFileSync(join(ROOT, page), 'utf8')) ?? []
  project.write('guide.mts', sample)
  for (let run = 0; run < 2; run += 1) {
    const outcome = await project.run(process.execPath, ['guide.mts'], { HOLDFAST_STORE: 'sqlite:leases.db' })
    const { stdout, stderr } = succeed(outcome)
    expect({ stdout, stderr }).toEqual({ stdout: expect.stringMatching(/^\S/), stderr: '' })
  }
})

test('holdfast demo runs from the package', async () => {
  const { stdout, stderr } = succeed(await project.run('node_modules/.bin/holdfast', ['demo']))
  expect(stdout).toContain('60 orders, 60 invoices: 0 missing, 0 twice')
  expect(stderr).toBe('')
}, 90_000)

test('doctor without the client of its store says what to install, with exit code 69', async () => {
  const result = await project.run('node_modules/.bin/holdfast', ['doctor', '--store', 'redis://127.0.0.1:1'])
  expect(result).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('npm i ioredis') })
})

test('an ECMAScript module can import it', async () => {
  project.copy('esm.mjs')
  const { stdout, stderr } = succeed(await project.node('esm.mjs'))
  expect(stdout.split('\n')).toEqual(['memory bigint', 'sqlite bigint', 'function false holdfast', ''])
  expect(stderr).toBe('')
})

test('CommonJS can require it, and recognises errors and leases of an imported copy', async () => {
  project.copy('cjs.cjs')
  const { stdout, stderr } = succeed(await project.node('cjs.cjs'))
  const lines = [
    'memory bigint',
    'sqlite bigint',
    'true',
    'function true holdfast',
    'DRIVER_MISSING true',
    'DRIVER_MISSING true',
    '',
  ]
  expect(stdout.split('\n')).toEqual(lines)
  expect(stderr).toBe('')
})

// Files of the build that load each other in a circle would see parts that are not there yet.
test('each entry point can be the first that a program loads', async () => {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { exports: object }
  const names = Object.keys(exports).filter(name => !/package\.json|nestjs|otel/.test(name)) // these two need a peer
  const outcomes = names.map(async name => {
    const id = JSON.stringify(`holdfast${name.slice(1)}`)
    const { code, stderr } = await project.node('-e', `require(${id}); import(${id})`)
    return { name, code, stderr }
  })
  expect(await Promise.all(outcomes)).toEqual(names.map(name => ({ name, code: 0, stderr: '' })))
})

test('it works in Jest, with real and with fake timers', async () => {
  project.copy('jest.test.js')
  const { stderr } = succeed(
    await project.tool('jest/bin/jest.js', '--rootDir', project.folder, '--ci', 'jest.test.js'),
  )
  expect(stderr).toMatch(/^Tests: +5 passed, 5 total$/m)
})

test('the example for Jest runs', async () => {
  project.write('example.test.cjs', readFileSync(join(import.meta.dirname, '../../examples/jest.test.cjs'), 'utf8'))
  const { stderr } = succeed(
    await project.tool('jest/bin/jest.js', '--rootDir', project.folder, '--ci', 'example.test.cjs'),
  )
  expect(stderr).toMatch(/^Tests: +2 passed, 2 total$/m)
})

// Like projects of users: without skipLibCheck and without a Redis client.
const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true }
const node = { lib: ['es2022'], types: ['node'] }
const browser = { lib: ['es2022', 'dom'], types: [] }

/** `npm run check` has the current one compile the sources. */
const compilers = ['typescript-oldest', ...(isFull ? ['typescript-current'] : [])]

describe.each(compilers)('%s accepts its declarations', compiler => {
  test.each([
    ['in an ECMAScript module', 'module.mts', { module: 'nodenext', target: 'es2022', ...node }],
    ['in a CommonJS module', 'script.cts', { module: 'nodenext', target: 'es2022', ...node }],
    ['with a bundler', 'bundled.ts', { module: 'esnext', moduleResolution: 'bundler', target: 'es2022', ...node }],
    [
      'without @types/node',
      'plain.ts',
      { module: 'esnext', moduleResolution: 'bundler', target: 'es2022', ...browser },
    ],
  ])(
    '%s',
    async (_, file, options) => {
      const user = await Project.withPackages(tarball)
      try {
        if (options.types.length > 0) user.link('@types/node')
        user.copy('types.ts')
        await user.run('mv', ['types.ts', file])
        user.write('tsconfig.json', JSON.stringify({ compilerOptions: { ...strict, ...options }, files: [file] }))
        expect(await compile(user, compiler)).toMatchObject({ stdout: '', code: 0 })
      } finally {
        user.remove()
      }
    },
    60_000,
  )
})

test.each(compilers)(
  '%s accepts the samples of the documentation',
  async compiler => {
    const user = await Project.withPackages(tarball)
    try {
      user.write('package.json', '{ "type": "module" }')
      user.link('@types/node')
      user.linkDependencies()
      const samples = samplesOfPages()
      for (const { file, text } of samples) user.write(file, text)
      // Samples for Nest have its decorators.
      const options = { ...strict, experimentalDecorators: true, skipLibCheck: true, module: 'nodenext', ...node }
      Object.assign(options, { target: 'es2022', lib: [...node.lib, 'esnext.disposable'] })
      const files = samples.map(({ file }) => file)
      user.write('tsconfig.json', JSON.stringify({ compilerOptions: options, files }))
      expect(await compile(user, compiler)).toMatchObject({ stdout: '', code: 0 })
    } finally {
      user.remove()
    }
  },
  120_000,
)

function compile(user: Project, compiler: string): Promise<Outcome> {
  return user.tool(`${compiler}/bin/tsc`, '--project', user.folder)
}

test('npx holdfast runs a command under a lease and returns its exit code', async () => {
  const script = 'console.log(process.env.HOLDFAST_NAME, /^[0-9]+$/.test(process.env.HOLDFAST_TOKEN)); process.exit(7)'
  const args = ['--no-install', 'holdfast', 'run', 'hello', '--', 'node', '-e', script]
  const store = `sqlite:${join(project.folder, 'npx.db')}`
  const outcome = await project.run('npx', args, { HOLDFAST_STORE: store })
  expect(outcome).toMatchObject({ code: 7, stdout: 'hello true\n' })
})

describe('holdfast-lab', () => {
  const prove = (user: Project, ...args: string[]): Promise<Outcome> =>
    user.run('npx', ['--no-install', 'holdfast', 'prove', ...args, '--json'])
  const sqlite = '--lab sqlite --ttl 500ms --duration 3s --faults client-pause,client-kill'.split(' ')

  test('without it, holdfast prove reports how to install it', async () => {
    const { code, stderr } = await prove(project, ...sqlite)
    expect(code).toBe(69)
    expect(stderr).toMatch(/"code":"DRIVER_MISSING","message":"[^"]*npm install --save-dev holdfast-lab/)
  })

  describe('installed', () => {
    let user: Project
    beforeAll(async () => {
      user = await Project.withPackages(tarball, others[2])
    })
    afterAll(() => user?.remove())

    test.each(['mjs', 'cjs'])('authors of stores import its conformance suite in .%s', async kind => {
      const get = (name: string, from: string): string =>
        kind === 'mjs' ? `import { ${name} } from '${from}'` : `const { ${name} } = require('${from}')`
      const lines = [get('memory', 'holdfast/memory'), get('conformanceCases', 'holdfast-lab/conformance')]
      lines.push("const store = memory(), why = 'it is in this process'")
      lines.push('const lacks = { close: why, cut: why, delay: why, stop: why, pause: why, jump: why }')
      lines.push("const cases = conformanceCases({ name: 'mine', open: async () => store, lacks })")
      lines.push("cases.find(({ name }) => name.startsWith('R1: ')).run().then(() => console.log('passed'))")
      user.write(`conformance.${kind}`, lines.join('\n'))
      expect(succeed(await user.node(`conformance.${kind}`))).toMatchObject({ stdout: 'passed\n', stderr: '' })
    })

    test('holdfast prove runs', async () => {
      const { code, stdout, stderr } = await prove(user, ...sqlite)
      expect({ code, stderr }).toMatchObject({ code: expect.toBeOneOf([0, 2]) }) // the run is short
      const { rows, counts } = JSON.parse(stdout) as { rows: { outcome: string }[]; counts: { grants: number } }
      expect(rows).toHaveLength(7)
      expect(counts.grants).toBeGreaterThan(0)
    })

    test('holdfast prove reports which client of a server to install', async () => {
      const { code, stderr } = await prove(user, '--lab', 'redis')
      expect(code).toBe(69)
      expect(stderr).toMatch(/"code":"DRIVER_MISSING","message":"[^"]*npm install --save-dev ioredis/)
    })
  })
})

describe('the drop-ins, under the names of the old libraries', () => {
  let user: Project
  beforeAll(async () => {
    const [redlock, semaphore] = others
    user = new Project()
    // Its redlock is replaced by an override.
    const dependent = { name: 'dependent', version: '1.0.0', dependencies: { redlock: '5.0.0-beta.2' } }
    user.write('dependent/package.json', JSON.stringify(dependent))
    user.write('dependent/index.js', "exports.Redlock = require('redlock').default")
    const manifest = {
      private: true,
      dependencies: {
        holdfast: `file:${tarball}`,
        '@sesamecare-oss/redlock': `file:${redlock}`,
        'redis-semaphore': `file:${semaphore}`,
        dependent: 'file:dependent',
      },
      overrides: { redlock: `file:${redlock}` },
    }
    user.write('package.json', JSON.stringify(manifest))
    await user.install('--install-links')
    user.link('@types/node')
    user.linkDependencies()
  }, 120_000)
  afterAll(() => user?.remove())

  test.each(['drop-ins.cjs', 'drop-ins.mjs'])('%s locks with them, itself and in a dependency', async script => {
    const server = await startRedis()
    try {
      user.copy(script)
      const { stdout, stderr } = succeed(await user.node(script, String(server.port)))
      const lines = [
        'redlock bigint true',
        'dependent bigint',
        '@sesamecare-oss/redlock bigint',
        'redis-semaphore true',
      ]
      expect(stdout.split('\n')).toEqual([...lines, ''])
      expect(stderr).toBe('')
    } finally {
      await server.stop()
    }
  })

  test.each(compilers)('%s accepts their declarations', async compiler => {
    const text = readFileSync(join(import.meta.dirname, 'fixtures/drop-ins.ts'), 'utf8')
    const files = ['drop-ins.mts', 'drop-ins.cts']
    for (const file of files) user.write(file, text)
    const compilerOptions = { ...strict, module: 'nodenext', target: 'es2022', ...node }
    user.write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
    expect(await compile(user, compiler)).toMatchObject({ stdout: '', code: 0 })
  })
})
