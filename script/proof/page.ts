import { ENGINES, type LabEngine } from '../../lab/engines/index.ts'
import { ms, number } from '../../lab/judge/format.ts'
import type { Verdict } from '../../lab/judge/verdict.ts'
import { PROGRAMMES, type Proof } from './proof.ts'

const PROMISES: Readonly<Record<Proof['rows'][number]['promise'], string>> = {
  safety: 'safety',
  tokens: 'tokens',
  notified: 'notified in time',
  waiting: 'waiting',
  deadlock: 'liveness A',
  faults: 'liveness B',
}

/** docs/proof/README.md: the result of each run, in the order of the engines. */
export function page(proofs: readonly Proof[]): string {
  const known = Object.keys(ENGINES)
  const rank = ({ engine, programme }: Proof): number =>
    known.indexOf(engine) * PROGRAMMES.length + PROGRAMMES.indexOf(programme)
  const all = proofs.toSorted((one, other) => rank(one) - rank(other))
  return `${[
    '# What the fault lab showed',
    'Written by `./script/prove` and by `npm run generate`. The column *minutes* has the length of each run. Do not edit it. [How a run is judged](fault-lab.md) explains the promises. *Usual* are the default faults. *All* adds the other faults of the engine, such as clock jumps, but not `server-forget`: no engine promises to tolerate clock jumps and lost memory at once. *Sharing* has the default faults, with permits, readers and writers instead of leases. The data are in [results.json](results.json).',
    '## Verdicts',
    table(['engine', 'faults', ...Object.values(PROMISES), 'ended'], all.map(verdict), missing(all)),
    ...knownNotToHold(),
    ...(all.length > 0 ? ['## What was seen', EXPLAINED, table(SEEN, all.map(seen)), '## Runs'] : []),
    ...known.filter(engine => all.some(proof => proof.engine === engine)).map(engine => section(engine, all)),
  ].join('\n\n')}\n`
}

function verdict({ engine, programme, rows, date }: Proof): string[] {
  const outcomes = Object.keys(PROMISES).map(promise => {
    const row = rows.find(each => each.promise === promise)
    if (row?.outcome === 'violated') return `**violated** (${number(row.broken)})`
    return row?.outcome ?? 'not yet'
  })
  return [engine, programme, ...outcomes, date.replace('T', ' ')]
}

function missing(all: readonly Proof[]): string[][] {
  const none = Object.keys(ENGINES).filter(name => !all.some(({ engine }) => engine === name))
  return none.map(engine => [engine, 'not shown yet'])
}

/** An engine may have a known violation. */
type Known = LabEngine & { readonly known?: { readonly what: string } }

const EXPLAINED =
  'Times are milliseconds. *Overlaps*: two clients acted as holders of one name at once. *Reacquired*: the longest time until the name of a dead holder was acquired, including server faults. *Notified*: how long before the next grant holders were notified, the least and the median.'
const SEEN = [
  ...['engine', 'faults', 'minutes', 'faults injected', 'grants', 'takeovers', 'losses', 'deaths', 'writes accepted'],
  ...['writes refused', 'overlaps', 'reacquired', 'notified'],
]

function seen({ engine, programme, duration, counts, overlaps, margins, recoveries }: Proof): string[] {
  const { faults, grants, takeovers, losses, deaths, accepted, rejected } = counts
  const injected = Object.values(faults).reduce((sum, times) => sum + times, 0)
  return [
    ...[engine, programme, minutes(duration)],
    ...[injected, grants, takeovers, losses, deaths, accepted, rejected].map(number),
    number(overlaps.total),
    recoveries ? number(recoveries.longest) : '',
    margins ? `${number(margins.least)}, ${number(margins.median)}` : '',
  ]
}

/** The known violations, and how to show them. */
function knownNotToHold(): string[] {
  const rows = Object.entries<Known>(ENGINES).flatMap(([name, { known }]) =>
    known ? [[name, known.what, `\`holdfast prove --lab ${name} --known-violation\``]] : [],
  )
  if (rows.length === 0) return []
  return [
    '## Known not to hold',
    'After these events two clients may both believe that they hold a name. No engine promises to tolerate them. The fence refuses the late writes.',
    table(['engine', 'when', 'to see it'], rows),
  ]
}

function section(name: string, all: readonly Proof[]): string {
  const runs = all.filter(({ engine }) => engine === name)
  return [`### ${name}`, sentence(ENGINES[name]?.what ?? ''), ...runs.flatMap(described)].join('\n\n')
}

function described({ programme, run, counts, machine, commit, command, rows, explanation }: Proof): string[] {
  const { versions, clients, names, ttl } = run
  const programs = Object.entries(versions).map(([what, version]) => `${what} ${version}`)
  const faults = Object.entries(counts.faults).map(([what, times]) => `${what} ${number(times)}`)
  const remarks = rows.flatMap(({ promise, first, missing: lacks }) =>
    [...(first ? [first] : []), ...lacks].map(text => `- ${PROMISES[promise]}: ${text}`),
  )
  return [
    `**${programme}**: ${faults.join(', ')}. ${clients} clients, ${names} names, ttl ${ms(ttl)}; ${programs.join(', ')}; ${machine}; commit ${commit}.`,
    ...(remarks.length > 0 ? [remarks.join('\n')] : []),
    ...(explanation.length > 0 ? [`\`\`\`text\n${explanation.join('\n')}\n\`\`\``] : []),
    `\`\`\`\n${command}\n\`\`\``,
  ]
}

/** Minutes; with a decimal for short runs. */
export function minutes(duration: Verdict['duration']): string {
  const exact = duration / 60_000
  return exact < 10 ? String(Number(exact.toFixed(1))) : number(exact)
}

/** The name of the promise in the tables. */
export function titleOf(promise: Proof['rows'][number]['promise']): string {
  return PROMISES[promise]
}

export function table(head: readonly string[], ...rows: readonly (readonly (readonly string[])[])[]): string {
  const lines = rows.flat().map(cells => head.map((_, index) => cells[index] ?? ''))
  return [head, head.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
