import { engineOf } from '../../engines.ts'
import { LeaseError } from '../../index.ts'
import { COMMON, parse, seeHelp } from '../arguments.ts'
import { counted } from '../counted.ts'
import { messageOf, Usage } from '../failure.ts'
import { Output, paint, printable } from '../output.ts'
import { Signals } from '../signals.ts'
import { storeUrl } from '../store-url.ts'
import { wrap } from '../wrap.ts'
import { type Finding, LEVELS, problem } from './finding.ts'
import { tryLease } from './trial.ts'

/** The time limit of each group of checks, in ms. */
const LIMIT = 10_000

const UNCHECKED = 'unchecked'

/** The number of characters before the id of a finding. */
const INDENT = 9

type Check = (url: string, signal: AbortSignal) => Promise<Finding[]>

/** The checks in addition to the trial, by engine. */
const CHECKS: Readonly<Record<string, () => Promise<Check>>> = {
  'azure-blob': async () => (await import('./azure-blob.ts')).checkAzureBlob,
  dynamodb: async () => (await import('./dynamodb.ts')).checkDynamoDb,
  etcd: async () => (await import('./etcd.ts')).checkEtcd,
  mysql: async () => (await import('./mysql.ts')).checkMysql,
  nats: async () => (await import('./nats.ts')).checkNats,
  postgres: async () => (await import('./postgres.ts')).checkPostgres,
  redis: async () => (await import('./redis.ts')).checkRedis,
  redlock: async () => (await import('./redlock.ts')).checkRedlock,
  sqlite: async () => (await import('./sqlite.ts')).checkSqlite,
  zookeeper: async () => (await import('./zookeeper.ts')).checkZooKeeper,
}

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const

/** `holdfast doctor`: finds what makes leases unsafe or slow. Returns 1 for a warning and 2 for a problem. */
export async function doctor(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse('doctor', [...args], COMMON)
  if (positionals.length > 0) throw new Usage(`doctor takes options only; ${seeHelp('doctor')}`)
  const output = new Output(values)
  const url = storeUrl(values.store, output)
  const { stop } = new Signals('before all checks had ended')
  const check = await CHECKS[engineOf(url).name]?.()
  const findings = await limited(signal => tryLease(url, output, signal), stop)
  const more = check ? await limited(signal => check(url, signal), stop) : []
  const hasFailed = findings.some(({ level }) => level === 'problem')
  // After a trial that failed, checks that ended early have the same cause.
  findings.push(...more.filter(({ id }) => !hasFailed || id !== UNCHECKED))
  const sorted = LEVELS.toReversed().flatMap(level => findings.filter(finding => finding.level === level))
  output.print(sorted, text(sorted))
  if (values.quiet && !values.json)
    for (const { id, level, what, why, advice } of sorted)
      if (level === 'problem') output.failed(id, `${id}: ${what}: ${why}; ${advice}`)
  return Math.max(...findings.map(({ level }) => LEVELS.indexOf(level)))
}

/**
 * Runs one group of checks with the time limit. A group that fails becomes a problem, so it does not hide the findings of
 * another group. After `stop` aborts it rejects, once the check has removed what it wrote or its time is over.
 */
async function limited(check: (signal: AbortSignal) => Promise<Finding[]>, stop: AbortSignal): Promise<Finding[]> {
  const limit = AbortSignal.timeout(LIMIT)
  const late = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(new Error(`no answer within ${LIMIT} ms`)), { once: true })
  })
  try {
    return await Promise.race([check(AbortSignal.any([limit, stop])), late])
  } catch (error) {
    if (LeaseError.is(error, 'DRIVER_MISSING')) throw error // this says nothing about the store
    const what = `the checks ended early: ${messageOf(error)}`
    const advice = 'start the server, correct the URL, or do what the message says; then run doctor again'
    return [problem(UNCHECKED, what, 'other findings may be missing', advice)]
  } finally {
    stop.throwIfAborted()
  }
}

/** Prints what is wrong, then what is ok, then the numbers of both: `1 warning, 8 ok`. */
function text(findings: readonly Finding[]): string {
  const numbers = LEVELS.toReversed().flatMap(level => {
    const { length } = findings.filter(finding => finding.level === level)
    if (length === 0) return []
    return [paint(COLOURS[level], level === 'ok' ? `${length} ok` : counted(length, level))]
  })
  const all = findings.flatMap(lines)
  return [...all, ...(all.at(-1) === '' ? [] : ['']), numbers.join(', ')].join('\n')
}

function lines({ id, level, what, why, advice }: Finding): string[] {
  const width = process.stdout.columns ?? Number.POSITIVE_INFINITY
  const all = [`${id}: ${what}`, ...(level === 'ok' ? [] : [why, advice])]
  const [first = '', ...rest] = all.flatMap(each => wrap(printable(each), INDENT, width))
  const found = [`${paint(COLOURS[level], level.padEnd(INDENT))}${first.trimStart()}`, ...rest]
  return level === 'ok' ? found : [...found, '']
}
