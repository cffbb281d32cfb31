import { ENGINES as LAB } from '../../lab/engines/index.ts'
import { type Opening, openAt } from '../../lab/engines/opening.ts'
import { number } from '../../lab/judge/format.ts'
import type { Guarantees } from '../../src/contract/store.ts'
import { takeoverTime } from '../../src/contract/time.ts'
import { ENGINES } from '../../src/engines.ts'
import { minutes, page, table, titleOf } from './page.ts'
import type { Proof } from './proof.ts'
import { proofs } from './results.ts'

const BLOCK = /(?<=<!-- (?:guarantees|engines): begin -->\n).*?(?=<!-- (?:guarantees|engines): end -->)/s

/** A store in the tables. No server runs at its URL, and it is not connected to. */
interface Listed {
  /** The name of its page in docs/stores. */
  readonly page: string
  readonly at: Opening
}

/** Session advisory locks have no URL. */
const ADVISORY: Listed = { page: 'postgres-advisory', at: { advisory: 'postgres://unused', ttl: 10_000 } }

const STORES: readonly Listed[] = ENGINES.flatMap(({ name, example }) => [
  { page: name, at: { url: example } },
  ...(name === 'postgres' ? [ADVISORY] : []),
])

interface Promised {
  readonly page: string
  readonly name: string
  readonly guarantees: Guarantees
}

const all = proofs()

/** By path: how to update a page with the engines, the guarantees of stores, and the stored results. */
export async function pages(): Promise<[path: string, change: (text: string) => string][]> {
  const stores = await Promise.all(STORES.map(promised))
  return [
    ['docs/proof/README.md', () => page(all)],
    ['docs/stores/README.md', text => withBlock(text, [openings()])],
    ['docs/reference/guarantees.md', text => withBlock(text, [overview(stores)])],
    ...stores.map((store): [string, (text: string) => string] => [
      `docs/stores/${store.page}.md`,
      text => withBlock(text, section(store)),
    ]),
  ]
}

/** An account that exists nowhere: nothing is sent to it. */
process.env.AZURE_STORAGE_CONNECTION_STRING ??= 'UseDevelopmentStorage=true'

async function promised({ page, at }: Listed): Promise<Promised> {
  await using store = await openAt(at)
  return { page, name: store.kind, guarantees: store.guarantees }
}

function withBlock(text: string, parts: readonly string[]): string {
  if (!BLOCK.test(text)) throw new Error('a page has no begin and end marks of its generated part')
  return text.replace(BLOCK, () => `\n${parts.join('\n\n')}\n\n`)
}

function overview(stores: readonly Promised[]): string {
  return table(
    [
      ...['store', 'shared by', 'order', 'waiting', 'sharing of a name'],
      ...['shortest ttl', 'takeover, ttl of 10 s', 'clock that ends a lease'],
    ],
    stores.map(({ page, name, guarantees: { scope, order, waiting, sharing, minTtl, takeover, clock } }) => [
      ...[
        `[${name}](../stores/${page}.md#what-it-promises)`,
        scope,
        order,
        waiting,
        sharing === 'slots' ? 'permits, readers, writers' : 'permits, unordered',
      ],
      ...[`${number(minTtl)} ms`, `${number(takeoverTime(10_000, takeover))} ms`, clock],
    ]),
  )
}

/** How to open each engine. */
function openings(): string {
  return table(
    ['engine', 'entry point', 'URL', 'client, by URL'],
    ENGINES.map(({ name, schemes, example, clients: [client, ...others] }) => [
      `[${name}](${name}.md)`,
      `\`holdfast/${name}\``,
      `\`${example}\`${schemes.length > 1 ? ` (also \`${schemes.slice(1).join('` `')}\`)` : ''}`,
      client === undefined ? 'none' : [`\`npm i ${client}\``, ...others].join(', or '),
    ]),
  )
}

/** The generated part of a store's page. Its lab engines have its name, or begin with it and a hyphen. */
function section({ page, guarantees }: Promised): string[] {
  const isOf = (engine: string): boolean => engine === page || engine.startsWith(`${page}-`)
  const engines = Object.keys(LAB).filter(
    engine => isOf(engine) && (engine === ADVISORY.page) === (page === ADVISORY.page),
  )
  const { exclusion, token, durability, limits } = guarantees
  return [
    [`- **Exclusion**: ${exclusion}.`, `- **Token**: ${token}.`, `- **Durability**: ${durability}.`].join('\n'),
    'Not promised:',
    limits.map(limit => `- ${limit}`).join('\n'),
    ...(engines.length > 0 ? [engines.map(shown).join('\n\n')] : []),
  ]
}

/** The results of an engine in the lab. */
function shown(engine: string): string {
  const runs = all.filter(proof => proof.engine === engine)
  if (runs.length === 0) return `[The fault lab](../proof/README.md) has not shown ${engine} yet.`
  const sum = (of: (proof: Proof) => number): number => runs.reduce((total, proof) => total + of(proof), 0)
  const rows = runs.flatMap(proof => proof.rows)
  const broken = rows.reduce((total, row) => total + row.broken, 0)
  const open = rows.filter(row => row.outcome === 'inconclusive').map(row => titleOf(row.promise))
  const violations = [
    broken > 0 ? `**${number(broken)}**` : '0',
    ...(open.length > 0 ? [`too little seen of ${[...new Set(open)].join(', ')}`] : []),
  ]
  const [grants, rejected] = [sum(proof => proof.counts.grants), sum(proof => proof.counts.rejected)].map(number)
  const time = minutes(sum(proof => proof.duration))
  const first = runs.map(proof => proof.date.slice(0, 10)).sort()[0]
  const overlaps = number(sum(proof => proof.overlaps.total))
  const seen = `${grants} grants, ${overlaps} overlaps of two holders, ${rejected} writes refused, violations: ${violations.join('; ')}`
  return `[The fault lab](../proof/README.md) of ${engine}: ${time} minutes in ${runs.length} runs, the first on ${first}; ${seen}.`
}
