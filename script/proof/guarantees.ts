import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENGINES } from '../../lab/engines/index.ts'
import { type Opening, openAt } from '../../lab/opening.ts'
import { number } from '../../lab/prove/verdict.ts'
import type { Guarantees } from '../../src/contract/store.ts'
import { minutes, page, table, titleOf } from './page.ts'
import { type Proof, proofs } from './results.ts'

const ROOT = join(import.meta.dirname, '../..')
const BLOCK = /(?<=<!-- guarantees: begin -->\n).*?(?=<!-- guarantees: end -->)/s

interface Listed {
  readonly name: string
  /** In docs/stores. */
  readonly page: string
  /** Nobody answers there, nor is asked. */
  readonly at: Opening
  /** In the lab. */
  readonly engines: readonly string[]
}

const STORES: readonly Listed[] = [
  { name: 'memory', page: 'memory', at: { url: 'memory:' }, engines: [] },
  { name: 'sqlite', page: 'sqlite', at: { url: 'sqlite:unused.db' }, engines: ['sqlite'] },
  { name: 'redis', page: 'redis', at: { url: 'redis://unused' }, engines: ['redis', 'redis-sentinel'] },
  { name: 'redlock of 5', page: 'redlock', at: { url: 'redlock://a,b,c,d,e' }, engines: ['redlock'] },
  { name: 'postgres', page: 'postgres', at: { url: 'postgres://unused' }, engines: ['postgres'] },
  {
    name: 'postgres advisory',
    page: 'postgres',
    at: { advisory: 'postgres://unused', ttl: 10_000 },
    engines: ['postgres-advisory'],
  },
  { name: 'etcd', page: 'etcd', at: { url: 'etcd://unused' }, engines: ['etcd'] },
  { name: 'zookeeper', page: 'zookeeper', at: { url: 'zookeeper://unused' }, engines: ['zookeeper'] },
]

interface Promised extends Listed {
  readonly guarantees: Guarantees
}

const isCheck = process.argv[2] === '--check'
const stale: string[] = []
const all = proofs()
const stores = await Promise.all(STORES.map(promised))
write('docs/proof/README.md', () => page(all))
write('README.md', text => withBlock(text, [...promises(stores), shown(Object.keys(ENGINES), 'docs/proof/README.md')]))
for (const [name, listed] of Map.groupBy(stores, ({ page }) => page))
  write(`docs/stores/${name}.md`, text => withBlock(text, section(listed)))
if (stale.length > 0) {
  process.stderr.write(
    `not as the guarantees and docs/proof/results.json have it: ${stale.join(', ')}; npm run guarantees\n`,
  )
  process.exitCode = 1
}

async function promised(listed: Listed): Promise<Promised> {
  await using store = await openAt(listed.at)
  return { ...listed, guarantees: store.guarantees }
}

function write(path: string, change: (text: string) => string): void {
  const file = join(ROOT, path)
  const text = readFileSync(file, 'utf8')
  const changed = change(text)
  if (changed === text) return
  if (isCheck) stale.push(path)
  else writeFileSync(file, changed)
}

function withBlock(text: string, parts: readonly string[]): string {
  if (!BLOCK.test(text)) throw new Error('the marks of the guarantees are missing in a page')
  return text.replace(BLOCK, () => `\n${parts.join('\n\n')}\n\n`)
}

function promises(stores: readonly Promised[]): string[] {
  const rows = stores.map(({ name, guarantees }) => ({ name, ...guarantees }))
  return [
    table(
      ['store', 'shared by', 'order', 'waiting', 'shortest ttl', 'clock that ends a lease'],
      rows.map(each => [
        ...[each.name, each.scope, each.order, each.waiting],
        ...[`${number(each.shortestTtl)} ms`, each.clock],
      ]),
    ),
    table(
      ['store', 'only one holds', 'the token rises by', 'what survives a restart'],
      rows.map(({ name, exclusion, token, durability }) => [name, exclusion, token, durability]),
    ),
  ]
}

/** Of the page of a store, or of several. */
function section(listed: readonly Promised[]): string[] {
  const engines = listed.flatMap(each => each.engines)
  return [
    ...listed.flatMap(({ name, guarantees }) => [
      listed.length > 1 ? `Not promised by ${name}:` : 'Not promised:',
      guarantees.limits.map(limit => `- ${limit}`).join('\n'),
    ]),
    ...(engines.length > 0 ? [shown(engines, '../proof/README.md')] : []),
  ]
}

/** What the lab showed of each engine, and no more. */
function shown(engines: readonly string[], link: string): string {
  return table(
    ['engine', `shown by [the fault lab](${link})`],
    engines.map(engine => [engine, summary(all.filter(proof => proof.engine === engine))]),
  )
}

function summary(runs: readonly Proof[]): string {
  const [first] = runs
  if (!first) return 'not shown yet'
  const sum = (of: (proof: Proof) => number): number => runs.reduce((total, proof) => total + of(proof), 0)
  const rows = runs.flatMap(proof => proof.rows)
  const broken = rows.reduce((total, row) => total + row.broken, 0)
  const open = rows.filter(row => row.outcome === 'inconclusive').map(row => titleOf(row.promise))
  const date = runs.map(proof => proof.date.slice(0, 10)).sort()[0]
  const seen = [
    `${minutes(sum(proof => proof.duration))} min`,
    `${number(sum(proof => proof.counts.grants))} grants`,
    `${number(sum(proof => proof.counts.rejected))} writes refused`,
    broken > 0 ? `**${number(broken)} violations**` : '0 violations',
    ...(open.length > 0 ? [`too little seen of ${[...new Set(open)].join(', ')}`] : []),
  ]
  return `${seen.join(', ')} (${date})`
}
