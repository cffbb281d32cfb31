import { ENGINES, type LabEngine } from '../../lab/engines/index.ts'
import { ms, number, type Verdict } from '../../lab/prove/verdict.ts'
import { PROGRAMMES, type Proof } from './results.ts'

const PROMISES: Readonly<Record<Proof['rows'][number]['promise'], string>> = {
  safety: 'safety',
  tokens: 'tokens',
  told: 'told in time',
  deadlock: 'liveness A',
  faults: 'liveness B',
}

/** docs/proof/README.md: what each run showed, in the order of the engines. */
export function page(proofs: readonly Proof[]): string {
  const known = Object.keys(ENGINES)
  const rank = ({ engine, programme }: Proof): number =>
    known.indexOf(engine) * PROGRAMMES.length + PROGRAMMES.indexOf(programme)
  const all = proofs.toSorted((one, other) => rank(one) - rank(other))
  return `${[
    '# What the fault lab showed',
    'Written by `./script/prove`, which runs each engine for half an hour, and by `npm run guarantees`; do not edit it. [How a run is judged](../prove.md), with what each promise means. *Usual* is what goes wrong unless something else is asked for. *All* is what else the lab can do besides, such as clocks that jump, but without `server-forget`: clocks that jump and memory that is lost at once are more than is promised. The numbers, as data, are in [results.json](results.json).',
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
    return row?.outcome ?? ''
  })
  return [engine, programme, ...outcomes, date.replace('T', ' ')]
}

function missing(all: readonly Proof[]): string[][] {
  const none = Object.keys(ENGINES).filter(name => !all.some(({ engine }) => engine === name))
  return none.map(engine => [engine, 'not shown yet'])
}

/** An engine may have one. */
type Known = LabEngine & { readonly known?: { readonly what: string } }

const EXPLAINED =
  'Times in milliseconds. *Overlaps* are two who acted as holders of one name at once, and in brackets those of which a write of the older came in after one of the newer. *Had again* is the longest time for which a name was not had again whose holder died, faults of servers included. *Told* is how long before the next grant a loss was told: the least and the median.'
const SEEN = [
  ...['engine', 'faults', 'minutes', 'faults injected', 'grants', 'takeovers', 'losses', 'deaths', 'writes accepted'],
  ...['writes refused', 'overlaps', 'had again', 'told'],
]

function seen({ engine, programme, duration, counts, overlaps, margins, recoveries }: Proof): string[] {
  const { faults, grants, takeovers, losses, deaths, accepted, rejected } = counts
  const injected = Object.values(faults).reduce((sum, times) => sum + times, 0)
  return [
    ...[engine, programme, minutes(duration)],
    ...[injected, grants, takeovers, losses, deaths, accepted, rejected].map(number),
    `${number(overlaps.total)} (${number(overlaps.harmful)})`,
    recoveries ? number(recoveries.longest) : '',
    margins ? `${number(margins.least)}, ${number(margins.median)}` : '',
  ]
}

/** What each engine does not promise, and shows on demand. */
function knownNotToHold(): string[] {
  const rows = Object.entries<Known>(ENGINES).flatMap(([name, { known }]) =>
    known ? [[name, known.what, `\`holdfast prove --lab ${name} --known-violation\``]] : [],
  )
  if (rows.length === 0) return []
  return [
    '## Known not to hold',
    'What lets two believe that they hold, which the engine does not promise to bear. The fence refuses the late writes.',
    table(['engine', 'when', 'to see it'], rows),
  ]
}

function section(name: string, all: readonly Proof[]): string {
  const runs = all.filter(({ engine }) => engine === name)
  return [`### ${name}`, sentence(ENGINES[name]?.what ?? ''), ...runs.flatMap(described)].join('\n\n')
}

function described({ programme, run, counts, machine, commit, command, rows, story }: Proof): string[] {
  const { versions, clients, names, ttl } = run
  const programs = Object.entries(versions).map(([what, version]) => `${what} ${version}`)
  const faults = Object.entries(counts.faults).map(([what, times]) => `${what} ${number(times)}`)
  const remarks = rows.flatMap(({ promise, first, missing: lacks }) =>
    [...(first ? [first] : []), ...lacks].map(text => `- ${PROMISES[promise]}: ${text}`),
  )
  return [
    `**${programme}**: ${faults.join(', ')}. ${clients} clients, ${names} names, ttl ${ms(ttl)}; ${programs.join(', ')}; ${machine}; commit ${commit}.`,
    ...(remarks.length > 0 ? [remarks.join('\n')] : []),
    ...(story.length > 0 ? [`\`\`\`text\n${story.join('\n')}\n\`\`\``] : []),
    `\`\`\`\n${command}\n\`\`\``,
  ]
}

/** By the minute, but for runs of a few. */
export function minutes(duration: Verdict['duration']): string {
  const exact = duration / 60_000
  return exact < 10 ? String(Number(exact.toFixed(1))) : number(exact)
}

/** As the tables call it. */
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
