import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ENTRIES } from '../script/entries.ts'
import { ENGINES } from '../src/engines.ts'

const ROOT = join(import.meta.dirname, '..')

/** All that the lab imports of holdfast: entry points of the package. */
const PUBLIC = ['src/index.ts', 'src/store.ts', 'src/stores/redis/index.ts', 'src/stores/postgres/index.ts']

/** The same of the drop-ins. */
const OF_DROP_INS = ['src/index.ts', 'src/store.ts', 'src/stores/redis/index.ts', 'src/stores/redlock/index.ts']

/** The files that the commands in src/cli/run and src/cli/show may both import. */
const SHARED_BY_COMMANDS = globSync('src/cli/*.ts', { cwd: ROOT })

/** What every store may import. */
const SKELETON = ['src/contract', 'src/stores/rules', 'src/stores/url', 'src/stores/wire']

/** The folders and files that the sources of a folder may import, besides their own. The longest prefix of a path counts. */
const RINGS: Record<string, readonly string[]> = {
  'src/contract': [],
  'src/core': ['src/contract'],
  'src/leadership': ['src/contract', 'src/core'],
  'src/sharing': ['src/contract', 'src/core'],
  'src/stores/rules': ['src/contract'],
  'src/stores/url': ['src/contract'],
  'src/stores/wire': ['src/contract', 'src/stores/rules', 'src/stores/url'],
  'src/stores/quorum': SKELETON,
  'src/stores/cas': SKELETON,
  ...Object.fromEntries(ENGINES.map(({ name }) => [`src/stores/${name}`, [...SKELETON, 'src/stores/cas']])),
  'src/stores/redlock': [...SKELETON, 'src/stores/quorum', 'src/stores/redis'],
  'src/fencing': ['src/contract', 'src/core/work.ts', 'src/stores'],
  'src/observe': ['src/contract'],
  'src/dashboard': ['src/contract', 'src/create-locks.ts'],
  'src/integrations': ['src/contract', 'src/create-locks.ts'],
  'src/testing': [
    ...['src/contract', 'src/core', 'src/stores/memory', 'src/create-locks.ts'],
    ...['src/fencing/fence.ts', 'src/fencing/mark.ts', 'src/fencing/marks.ts', 'src/fencing/rule.ts'],
    'src/fencing/transaction.ts',
  ],
  // The public API. An old Node and `--help` must not load all of it: hence the files of the contract.
  'src/cli': [
    ...['src/index.ts', 'src/observe/prometheus.ts', 'src/contract/errors.ts', 'src/contract/node-version.ts'],
    ...['src/contract/reserved.ts', 'src/contract/printable.ts', 'src/contract/record.ts', 'src/contract/store.ts'],
    ...['src/contract/mask.ts', 'src/contract/timers.ts'],
    ...['src/engines.ts', 'src/stores/url/load.ts'], // for `holdfast prove`
  ],
  'src/cli/run': [
    ...[...SHARED_BY_COMMANDS, 'src/index.ts', 'src/observe/prometheus.ts', 'src/contract/errors.ts'],
    ...['src/contract/reserved.ts', 'src/contract/record.ts', 'src/contract/store.ts', 'src/fencing/tokens.ts'],
    'src/contract/time.ts',
    ...['src/core/marker.ts', 'src/contract/environment.ts'], // what `once` remembers
  ],
  'src/cli/show': [
    ...[...SHARED_BY_COMMANDS, 'src/index.ts', 'src/contract/errors.ts', 'src/contract/reserved.ts'],
    ...['src/marks.ts', 'src/migrate.ts', 'src/fencing/marks.ts', 'src/core/advice'],
    ...['src/contract/record.ts', 'src/contract/store.ts', 'src/contract/time.ts', 'src/dashboard'],
  ],
  // It asks the servers themselves, which the public API does not.
  'src/cli/doctor': [...SHARED_BY_COMMANDS, 'src/index.ts', 'src/engines.ts', 'src/stores'],
  'lab/conformance': PUBLIC,
  'lab/servers': PUBLIC,
  'lab/judge': [...PUBLIC, 'src/stores/rules/name.ts', 'src/stores/rules/state.ts'],
  'lab/report': ['lab/judge'],
  'lab/faults': ['lab/servers', 'lab/judge'],
  'lab/engines': [...PUBLIC, 'lab/servers', 'lab/faults'],
  'lab/run': [...PUBLIC, 'lab/servers', 'lab/faults', 'lab/judge', 'lab/engines'],
  'lab/cli': ['lab/servers', 'lab/faults', 'lab/judge', 'lab/engines', 'lab/run', 'lab/report'],
  lab: ['script/by-name.ts'],
  'drop-ins/shared': OF_DROP_INS,
  'drop-ins/redis-semaphore': [...OF_DROP_INS, 'drop-ins/shared', 'drop-ins/build.ts'],
  'drop-ins/redlock': [...OF_DROP_INS, 'drop-ins/shared', 'drop-ins/build.ts'],
  'drop-ins': ['script/by-name.ts'],
  // The front door: index.ts, create-locks.ts, connect.ts
  src: ['src/contract', 'src/core', 'src/leadership', 'src/sharing', 'src/stores', 'src/fencing'],
}

const imports = new Map(sources().map(path => [path, importsOf(path)]))

test('every folder imports only the rings below it', () => {
  const breaches = [...imports].flatMap(([path, targets]) =>
    targets.filter(target => !mayImport(path, target)).map(target => `${path} -> ${target}`),
  )
  expect(breaches).toEqual([])
})

test('no imports form a circle', () => {
  const found = circles(imports).map(([first = '', ...rest]) =>
    [first, ...rest.map(path => relative(join(first, '..'), path))].join(' '),
  )
  expect(found).toEqual([])
})

test('the lab and the drop-ins import only entry points of the package', () => {
  expect(Object.values(ENTRIES)).toEqual(expect.arrayContaining([...PUBLIC, ...OF_DROP_INS]))
})

describe('a breach is found:', () => {
  test.each([
    ['src/contract/store.ts', 'src/core/locks.ts', false],
    ['src/core/locks.ts', 'src/contract/store.ts', true],
    ['src/core/thread/worker.ts', 'src/core/locks.ts', true],
    ['src/stores/redis/store.ts', 'src/stores/etcd/store.ts', false],
    ['src/stores/redis/store.ts', 'src/core/locks.ts', false],
    ['src/stores/unknown/store.ts', 'src/contract/store.ts', false],
    ['src/cli/run/run.ts', 'src/index.ts', true],
    ['src/cli/run/run.ts', 'src/connect.ts', false],
    ['src/index.ts', 'lab/index.ts', false],
    ['src/index.ts', 'src/connect.ts', true],
    ['src/index.ts', 'src/cli/main.ts', false],
    ['src/cli/prove.ts', 'lab/index.ts', false],
    ['src/cli/run/run.ts', 'src/cli/output.ts', true],
    ['src/cli/run/run.ts', 'src/cli/show/ls.ts', false],
    ['lab/run/run.ts', 'src/index.ts', true],
    ['lab/run/run.ts', 'src/connect.ts', false],
    ['lab/judge/trace.ts', 'lab/run/run.ts', false],
    ['drop-ins/redlock/lock.ts', 'src/core/locks.ts', false],
    ['drop-ins/shared/term.ts', 'drop-ins/redlock/lock.ts', false],
  ])('%s -> %s: %s', (path, target, allowed) => expect(mayImport(path, target)).toBe(allowed))

  test('a circle of three', () => {
    const circle = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', []],
    ])
    expect(circles(circle)).toEqual([['a', 'b', 'c']])
  })
})

function mayImport(path: string, target: string): boolean {
  const ring = Object.keys(RINGS)
    .filter(folder => path.startsWith(`${folder}/`))
    .reduce((longest, folder) => (folder.length > longest.length ? folder : longest), '')
  // A folder of stores without an entry may import nothing: each engine says what it needs.
  if (ring === 'src' && path.split('/').length > 2) return false
  const isOwn = ring === 'src' ? /^src.[^/]+$/.test(target) : target.startsWith(`${ring}/`)
  return isOwn || (RINGS[ring] ?? []).some(place => target === place || target.startsWith(`${place}/`))
}

/** Groups of files of which each reaches each other by imports (strongly connected components, Tarjan 1972). */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (node: string): number => {
    order.set(node, order.size)
    let low = order.size - 1
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next))
      else if (stack.includes(next)) low = Math.min(low, order.get(next) ?? low)
    }
    lowest.set(node, low)
    if (low === order.get(node)) {
      const group = stack.splice(stack.indexOf(node))
      if (group.length > 1) found.push(group.sort())
    }
    return low
  }
  for (const node of graph.keys()) if (!order.has(node)) visit(node)
  return found.sort((a, b) => (String(a) < String(b) ? -1 : 1))
}

function sources(): string[] {
  return globSync('{src,lab,drop-ins}/**/*.ts', { cwd: ROOT, exclude: ['**/dist/**', '**/node_modules/**'] })
    .filter(path => !path.endsWith('.test.ts') && !path.includes('/test/'))
    .sort()
}

function importsOf(path: string): string[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const specifiers = Array.from(text.matchAll(/(?:from|import\(|import) ?'(\.[^']*)'/g), ([, found = '']) => found)
  return specifiers
    .map(specifier => relative(ROOT, join(ROOT, dirname(path), specifier)))
    .filter(target => existsSync(join(ROOT, target)))
}
