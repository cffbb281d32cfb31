import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** The folders that the sources of a folder may import, besides their own. The longest prefix of a path counts. */
const RINGS: Record<string, readonly string[]> = {
  'src/contract': [],
  'src/core': ['src/contract'],
  'src/recipes': ['src/contract', 'src/core'],
  'src/stores/shared': ['src/contract'],
  'src/stores/memory': ['src/contract', 'src/stores/shared'],
  'src/stores/sqlite': ['src/contract', 'src/stores/shared'],
  'src/stores/redis': ['src/contract', 'src/stores/shared'],
  'src/stores/quorum': ['src/contract', 'src/stores/shared'],
  'src/stores/redlock': ['src/contract', 'src/stores/shared', 'src/stores/quorum', 'src/stores/redis'],
  'src/stores/postgres': ['src/contract', 'src/stores/shared'],
  'src/stores/etcd': ['src/contract', 'src/stores/shared'],
  'src/stores/zookeeper': ['src/contract', 'src/stores/shared'],
  'src/fencing': ['src/contract', 'src/stores'],
  'src/observe': ['src/contract'],
  'src/conformance': ['src/contract', 'src/core'],
  'src/testing': ['src/contract', 'src/core', 'src/stores/memory'],
  'src/cli': ['src'],
  lab: ['src'],
  src: ['src'], // the front door: index.ts, connect.ts
}

/** Breaches of today, each to be removed. One that is no longer needed fails the test too. */
const BREACHES: readonly string[] = [
  'src/cli/prove-options.ts -> lab/engines/index.ts',
  'src/cli/prove-options.ts -> lab/prove/fault.ts',
  'src/cli/prove.ts -> lab/engine.ts',
  'src/cli/prove.ts -> lab/engines/index.ts',
  'src/cli/prove.ts -> lab/prove/checker.ts',
  'src/cli/prove.ts -> lab/prove/fault.ts',
  'src/cli/prove.ts -> lab/prove/history.ts',
  'src/cli/prove.ts -> lab/prove/report.ts',
  'src/cli/prove.ts -> lab/prove/run.ts',
  'src/cli/prove.ts -> lab/prove/verdict.ts',
  'src/cli/prove.ts -> lab/prove/yours.ts',
  'src/cli/prove.ts -> lab/servers/folder.ts',
  'src/core/locks.ts -> src/recipes/election.ts',
  'src/core/locks.ts -> src/recipes/host.ts',
  'src/core/locks.ts -> src/recipes/lead.ts',
  'src/core/locks.ts -> src/recipes/leadership.ts',
  'src/core/thread/worker.ts -> src/connect.ts',
  'src/core/thread/worker.ts -> src/stores/sqlite/requests.ts',
]

/** The same of circles: the files of each. */
const CIRCLES: readonly string[] = [
  'src/core/acquire.ts core.ts held-lease.ts lease-handle.ts renewals.ts withdraw.ts',
  'src/core/locks.ts ../recipes/campaign.ts ../recipes/election.ts ../recipes/host.ts ../recipes/lead.ts ../recipes/leadership.ts ../recipes/observe.ts ../recipes/rest.ts',
  'src/core/thread/renewals.ts thread.ts',
]

const imports = new Map(sources().map(path => [path, importsOf(path)]))

test('every folder imports only the rings below it', () => {
  const breaches = [...imports].flatMap(([path, targets]) =>
    targets.filter(target => !mayImport(path, target)).map(target => `${path} -> ${target}`),
  )
  expect(breaches.sort()).toEqual([...BREACHES].sort())
})

test('no imports form a circle', () => {
  const found = circles(imports).map(([first = '', ...rest]) =>
    [first, ...rest.map(path => relative(join(first, '..'), path))].join(' '),
  )
  expect(found).toEqual(CIRCLES)
})

describe('a breach is found:', () => {
  test.each([
    ['src/contract/store.ts', 'src/core/locks.ts', false],
    ['src/core/locks.ts', 'src/contract/store.ts', true],
    ['src/core/thread/worker.ts', 'src/core/locks.ts', true],
    ['src/stores/redis/store.ts', 'src/stores/etcd/store.ts', false],
    ['src/stores/redis/store.ts', 'src/core/locks.ts', false],
    ['src/stores/mysql/store.ts', 'src/contract/store.ts', false],
    ['src/index.ts', 'lab/run.ts', false],
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
  return [ring, ...(RINGS[ring] ?? [])].some(folder => target.startsWith(`${folder}/`))
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
  return globSync('{src,lab}/**/*.ts', { cwd: ROOT, exclude: ['**/dist/**', '**/node_modules/**'] })
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
