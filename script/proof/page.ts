import { ENGINES, type LabEngine } from '../../lab/engines/index.ts'
import { number } from '../../lab/judge/format.ts'
import type { Verdict } from '../../lab/judge/verdict.ts'
import { argumentsOf, commandOf, DURATION, PROGRAMMES } from './programme.ts'
import type { Proof } from './proof.ts'
import { sourcesOf } from './sources.ts'

const PROMISES: Readonly<Record<Proof['rows'][number]['promise'], string>> = {
  safety: 'safety',
  tokens: 'tokens',
  answers: 'answers',
  notified: 'notified in time',
  waiting: 'waiting',
  deadlock: 'no deadlock',
  faults: 'recovery',
}

/** docs/proof/README.md: the result of each run, in the order of the engines. */
export function page(proofs: readonly Proof[]): string {
  const known = Object.keys(ENGINES)
  const rank = ({ engine, programme }: Proof): number =>
    known.indexOf(engine) * PROGRAMMES.length + PROGRAMMES.indexOf(programme)
  const all = proofs.toSorted((one, other) => rank(one) - rank(other))
  const unjudged = Object.entries(PROMISES)
    .filter(([promise]) => all.length > 0 && !all.some(({ rows }) => rows.some(row => row.promise === promise)))
    .map(([, title]) => title)
  return `${[
    '# What the fault lab showed',
    `A run takes 15 minutes: clients compete for names while servers and clients are killed, paused and cut off. Its log is then judged by seven promises: safety, tokens, answers, notified in time, waiting, no deadlock, recovery ([what they are](../../lab/judging.md)). ${howWaitingIsJudged(all)} [The specification](specification.md) says which answers are allowed.`,
    "Each run has 5 clients, a ttl of 1 s, and all servers on one machine with two cores, with up to two other runs. Their data were in memory (`/dev/shm`), so no disk was slow and no power failed. The clocks of two machines were never compared, and nothing ran on Redis Cluster, MySQL, Azure or Amazon's DynamoDB: see [servers](#servers).",
    `**${number(all.filter(proof => verdict(proof, unjudged) === 'passed').length)} of ${number(all.length)} runs passed. ${number(all.filter(proof => isSameCode(proof) && isWhole(proof)).length)} ran with the core and the store as they are now.** [What is not promised](#not-promised).`,
    'Each row is the last run that was stored. Some runs failed because the machine was too busy for its servers, or by a mistake of the judge. These were repeated. With nats-server 2.9.10, which is refused now, three runs of nine failed: for up to 124 s after several restarts no server answered, and the logs of two show a bucket without a working leader. With 2.10.27 two of three ended early: a restarted server was not healthy within 60 s. With the code of etcd as it is now, *all* and *sharing* failed twice, with three of its clusters on the machine at once: after the last faults names were free for up to 17 s. Their rows are of the code before. [results.json](results.json) has date, seed, times, faults, versions, machine and command of each run.',
    '`./script/prove --engine redis` takes an hour: the three runs, and 15 minutes of [random requests](../../lab/judging.md#long-runs), whose results are not stored. Without `--engine` it takes eleven. To repeat one run, take its commit and its command from results.json, in a clone. The seed repeats the faults, not how the processes are scheduled. The first row:',
    ...all.slice(0, 1).map(howToRepeat),
    EXPLAINED.map(([term, text]) => `- *${term}*: ${text}`).join('\n'),
    ...(unjudged.length > 0 ? [`Not judged in any run yet: ${unjudged.join(', ')}.`] : []),
    table(
      SEEN,
      all.map(proof => seen(proof, unjudged)),
      missing(all),
    ),
    ...all.flatMap(remarks),
    '## Servers',
    '*Bounds*: how long a name may have no holder, in addition to the ttl: after its holder died, and after servers failed. It [starts again](../../lab/judging.md#how-long-a-name-may-be-free) with each fault that may be the cause. *Never injected*: faults of [the list](../../lab/judging.md#faults) that the lab has for this engine, in none of its runs above.',
    table(
      ['engine', 'what ran', 'version', 'bounds, s', 'never injected'],
      known.map(name => serverOf(name, all)),
    ),
    ...knownNotToHold(),
  ].join('\n\n')}\n`
}

/** *Waiting* needs leases, and a store that notifies waiters or serves them in order. */
function howWaitingIsJudged(all: readonly Proof[]): string {
  const releases = all.map(({ counts }) => counts.handovers).filter(times => times > 0)
  const many = `: where waiters are notified, on ${number(Math.min(...releases))} to ${number(Math.max(...releases))} releases of each run`
  return `*Waiting* is not judged in *sharing* runs, nor over postgres-advisory. It is judged in [calm times](../../lab/judging.md#calm-times) only${releases.length > 0 ? many : ''}.`
}

function howToRepeat({ commit, command }: Proof): string {
  return `\`\`\`sh\ngit checkout ${commit} && ./script/setup --servers\nTMPDIR=/dev/shm ./script/${command}\n\`\`\``
}

/** The promises that the run broke, and those of which it showed too little. */
function verdict({ rows }: Proof, unjudged: readonly string[]): string {
  const told = Object.entries(PROMISES).flatMap(([promise, title]) => {
    if (unjudged.includes(title)) return []
    const row = rows.find(each => each.promise === promise)
    if (row?.outcome === 'passed') return []
    if (row?.outcome === 'violated') return [`**violated** (${number(row.broken)}): ${title}`]
    return [`${row ? row.outcome : 'not judged'}: ${title}`]
  })
  if (told.length === 0) return 'passed'
  return [...told, ...(rows.some(({ outcome }) => outcome === 'passed') ? ['others passed'] : [])].join('; ')
}

function missing(all: readonly Proof[]): string[][] {
  const wanted = Object.keys(ENGINES).flatMap(engine => PROGRAMMES.map(programme => [engine, programme]))
  return wanted
    .filter(([engine, programme]) => !all.some(each => each.engine === engine && each.programme === programme))
    .map(row => [...row, 'not shown yet'])
}

/** What the runs of an engine were of, and which of its faults none of them injected. */
function serverOf(name: string, all: readonly Proof[]): string[] {
  const runs = all.filter(({ engine }) => engine === name)
  const each = (of: (proof: Proof) => string): string => [...new Set(runs.map(of))].join('; ')
  const { what, faults, others, known } = ENGINES[name] as LabEngine
  const never = new Set([...faults, ...others, ...known.faults])
  for (const { counts } of runs) for (const fault of Object.keys(counts.faults)) never.delete(fault)
  return [
    name,
    what,
    each(({ run: { versions } }) => Object.entries(versions).flatMap(serverVersion).join(', ')),
    each(({ run: { bound } }) => [bound.death, bound.election].map(ms => number(ms / 1_000)).join(' and ')),
    [...never].join(', '),
  ]
}

function serverVersion([name, version]: [string, string]): string[] {
  return name === 'node' ? [] : [[name, ...(/^[\d.]+/.exec(version) ?? [])].join(' ')]
}

const EXPLAINED = [
  [
    'Engine',
    'a store as the lab runs it: Redis also behind Sentinel, PostgreSQL also with advisory locks. The three *programmes* of each differ in faults and claims:',
  ],
  ['Usual', 'the default faults: clients, network and servers; over sqlite, clients.'],
  [
    'All',
    'also the clock jumps and the dead addresses that the lab has [for the engine](../../lab/judging.md#faults), and over etcd `leader-pause`. A dead address lasts, so such a run has fewer faults. Not `server-forget`: no engine promises to tolerate clock jumps and lost memory at once.',
  ],
  [
    'Sharing',
    'the default faults, with permits, readers and writers instead of leases; over redlock and postgres-advisory, permits.',
  ],
  ['Takeovers', 'grants of a name that its last holder had not released.'],
  [
    'Writes refused',
    'by the fence, which had seen a higher token. Most began before the next grant and reached the fence after it. These are not overlaps.',
  ],
  [
    'Notice',
    'the shortest time between the notification of a holder and the next grant. It is negative if the notification came later. In brackets: the faults that may have caused that.',
  ],
  ['Undisturbed', 'the same, without takeovers that such a fault may have caused.'],
  [
    'Overlaps',
    'two clients acted as holders of one name at once. In a run that passed, each has [an excuse](../../lab/judging.md#what-is-excused), such as a clock jump, a pause between check and write, or over postgres-advisory the end of a connection. *Refused*: the fence refused a write of the older holder. In the other overlaps no write of the older holder came after one of the newer.',
  ],
  [
    'Code',
    'the commit that ran, and whether its core and store are the same as now. Not compared: comments, the texts of guarantees, the judge, and the client libraries of servers.',
  ],
]
const SEEN = [
  ...['engine', 'programme', 'verdict', 'minutes', 'faults injected', 'grants', 'takeovers'],
  ...['writes refused', 'notice, ms', 'undisturbed, ms', 'overlaps', 'code'],
]

function seen(proof: Proof, unjudged: readonly string[]): string[] {
  const { engine, programme, duration, counts, overlaps, margins } = proof
  const { faults, grants, takeovers, rejected } = counts
  const injected = Object.values(faults).reduce((sum, times) => sum + times, 0)
  return [
    ...[engine, programme, verdict(proof, unjudged), minutes(duration)],
    ...[injected, grants, takeovers, rejected].map(number),
    ...noticeOf(margins),
    overlapsOf(overlaps),
    `${isWhole(proof) ? '' : 'shorter, or with other faults; '}${isSameCode(proof) ? 'same as' : 'changed since'} ${proof.commit}`,
  ]
}

/** Are the core and the store the same as now? */
function isSameCode({ engine, sources }: Proof): boolean {
  return sources === sourcesOf(engine)
}

/** Did it run at least as long as `./script/prove` does, with all faults that the lab has now? */
function isWhole({ engine, programme, run, command }: Proof): boolean {
  const ms = Number(/ --duration (\d+)ms /.exec(command)?.[1])
  return ms >= DURATION && command === commandOf(argumentsOf(engine, programme, run.seed, ms))
}

function overlapsOf({ total, refused, harmful }: Proof['overlaps']): string {
  const effects = [
    ...(refused > 0 ? [`${number(refused)} refused`] : []),
    ...(harmful > 0 ? [`**${number(harmful)} wrote**`] : []),
  ]
  return effects.length > 0 ? `${number(total)} (${effects.join(', ')})` : number(total)
}

function noticeOf(margins: Proof['margins']): [notice: string, undisturbed: string] {
  if (!margins) return ['none', 'none']
  const { least, undisturbed, late } = margins
  const causes = late.length > 0 ? ` (${late.join(', ')})` : ''
  return [`${number(Math.round(least))}${causes}`, undisturbed === undefined ? 'none' : number(Math.round(undisturbed))]
}

/** The known violations, and how to show them. */
function knownNotToHold(): string[] {
  return [
    '## Not promised',
    'After events like these two clients may both believe that they hold a name. Each engine has one example here; the page of each [store](../stores/README.md) has all. The fence refuses the late writes. `./script/holdfast prove --lab ENGINE --known-violation` shows the example of that engine. A test runs that for redis; no results are stored.',
    table(
      ['engine', 'when'],
      Object.entries(ENGINES).map(([name, { known }]) => [name, known.what]),
    ),
  ]
}

/** What a run broke or did not show, and how to repeat it. Nothing of a run that passed. */
function remarks({ engine, programme, command, rows, explanation }: Proof): string[] {
  const told = rows.flatMap(({ promise, first, missing: lacks }) =>
    [...(first ? [first] : []), ...lacks].map(text => `- ${PROMISES[promise]}: ${text}`),
  )
  if (told.length === 0) return []
  return [
    `**${engine}, ${programme}**`,
    told.join('\n'),
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
