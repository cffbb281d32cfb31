/**
 * Starts five replicas of the invoice run (job.ts) under `holdfast run`. The first holder is killed. The next is paused for
 * longer than its ttl and resumed. The exit code is 1 unless the ledger has every order exactly once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from '../../src/index.ts'
import { Ledger } from './ledger.ts'
import { readOrders } from './orders.ts'
import { Replica } from './replica.ts'
import { paint, Timeline } from './timeline.ts'

const NAME = 'nightly-invoices'
const TTL = 3_000
/** In place of a name. */
const OTHERS = 'the others'
const NAMES = ['replica-1', 'replica-2', 'replica-3', 'replica-4', 'replica-5']

/** `holdfast demo` of the package runs what was built from this file. */
const isSource = import.meta.url.endsWith('.ts')
/** The command that starts Node as this process was started. */
const NODE = [process.execPath, ...process.execArgv]
const COMMAND = isSource ? './script/holdfast' : 'npx holdfast'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
const store = `sqlite:${join(folder, 'leases.db')}`
const total = readOrders().length
const timeline = new Timeline(NAMES, OTHERS)
const locks = await connect(store)
let replicas: Replica[] = []

let stopping = false

for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 }))
  process.on(signal, () => stop(code))
process.stdout.on('error', () => stop(1)) // the pipe was closed
try {
  await story()
} catch (error) {
  if (!stopping) reportFailure(error)
  process.exitCode = 1
} finally {
  await cleanUp()
}

async function story(): Promise<void> {
  timeline.print(`${paint('bold', `Five replicas of a job that invoices ${total} orders. One runs at a time.`)}
Each replica is started with

  holdfast run ${NAME} --ttl 3s --wait forever -- node job.ts

Without renewals a lease ends after 3 s (--ttl): a dead holder blocks nobody.
`)
  timeline.event('start', 'all five', 'start together')
  replicas = NAMES.map(
    name =>
      new Replica(
        name,
        [...NODE, at(isSource ? '../../src/cli/main.ts' : '../cli/main.js')].concat(
          ['run', NAME, '--ttl', '3s', '--wait', 'forever', '--owner', name],
          ['--', ...NODE, at(isSource ? 'job.ts' : 'job.js')],
        ),
        folder,
        { ...process.env, HOLDFAST_STORE: store },
      ),
  )

  // One runs, the others report the holder.
  const first = await nextHolder(0n)
  const short = shortener(first.token)
  timeline.event('run', first.name, `holds the lease, with fencing token ${first.token}`)
  const waits = await Promise.all(others(first).map(replica => waiting(replica, first.name)))
  timeline.event('wait', OTHERS, `wait: ${waits[0]}`)

  // Kill the holder halfway.
  await invoices(first.replica, total / 2)
  first.replica.kill()
  const killedAt = performance.now()
  await until(() => !first.replica.alive, TTL, `${first.name}'s job ends with it`)
  timeline.event('kill', first.name, 'is killed (SIGKILL) halfway; its job ends with it')

  const second = await nextHolder(first.token)
  const after = performance.now() - killedAt
  timeline.event('run', second.name, `takes over ${seconds(after)} later, with a higher token: ${short(second.token)}`)
  check(after <= TTL + 2_000, `a replica takes over within ${seconds(TTL + 2_000)}, not ${seconds(after)}`)

  // Pause the holder for longer than its ttl, like a paused container or virtual machine.
  await invoices(second.replica, Math.round(total * 0.7))
  await pause(second.replica)
  timeline.event('pause', second.name, 'is paused (SIGSTOP) for longer than its lease lasts')
  const third = await nextHolder(second.token)
  timeline.event('run', third.name, `takes over, with a higher token: ${short(third.token)}`)
  await invoices(third.replica, second.replica.invoiced + 5)

  // Resume the job before its supervisor, which would end it. Now only the ledger can refuse its writes.
  timeline.event('resume', second.name, 'goes on, does not know that its lease ended, and writes')
  second.replica.resume('job')
  const refused = await until(() => second.replica.match(/^refused: (.*)/), 5_000, `the ledger refuses ${second.name}`)
  timeline.event('refuse', second.name, `is refused: the ledger has seen token ${short(third.token)}`)
  check(refused[1]?.includes(`${third.token}`), `the refusal names token ${third.token}`)
  second.replica.resume('all')
  const exit = await second.replica.ended
  check(exit === 3 || exit === 76, `${second.name} ends with 3 (refused) or 76 (lease lost), not ${exit}`)

  // The third holder writes the rest. Two more runs find nothing to do.
  await invoices(third.replica, total)
  timeline.event('done', third.name, `has written the last of the ${total} invoices`)
  for (const replica of replicas.filter(({ name }) => name !== first.name && name !== second.name)) {
    const code = await replica.ended
    check(code === 0, `${replica.name} ends with 0, not ${code}`)
    if (replica !== third.replica) timeline.event('done', replica.name, 'gets the lease, and finds nothing left to do')
  }
  timeline.end()
  verdict([first, second, third])
}

interface Holder {
  readonly name: string
  readonly token: bigint
  readonly replica: Replica
}

/** The holder of the lease, once its token is above this. */
async function nextHolder(token: bigint): Promise<Holder> {
  return await until(
    async () => {
      const {
        holders: [holder],
      } = await locks.inspect(NAME)
      const replica = replicas.find(({ name }) => name === holder?.owner)
      if (!replica || holder?.token === undefined || holder.token <= token) return undefined
      return { name: replica.name, token: holder.token, replica }
    },
    20_000,
    'a replica holds the lease',
  )
}

function others({ name }: Holder): Replica[] {
  return replicas.filter(replica => replica.name !== name)
}

/** What the replica says while it waits. */
async function waiting(replica: Replica, holder: string): Promise<string> {
  const pattern = new RegExp(`held by ${holder},? for another [\\d.]+ m?s`)
  const what = `${replica.name} reports that ${holder} holds the lease`
  const [line] = await until(() => replica.match(pattern), 20_000, what)
  return line
}

/** Resolves when this many orders are invoiced. */
async function invoices(replica: Replica, count: number): Promise<void> {
  await until(
    () => {
      if (replica.invoiced > 0) timeline.progress(replica.name, replica.invoiced, total)
      return replica.invoiced >= count
    },
    30_000,
    `${replica.name} gets to order ${count}`,
  )
}

/**
 * Pauses between two transactions. A process that is paused inside a transaction keeps the SQLite file locked for all
 * others. That is a limit of SQLite, which this demo does not show.
 */
async function pause(replica: Replica): Promise<void> {
  for (;;) {
    replica.pause()
    await sleep(20)
    if (['leases.db', 'ledger.db'].every(isUnlocked)) return
    replica.resume('all')
    await sleep(20)
  }
}

function isUnlocked(file: string): boolean {
  const database = new DatabaseSync(join(folder, file))
  try {
    // Other processes lock the file for a few milliseconds only.
    database.exec('pragma busy_timeout = 500; begin immediate; rollback')
    return true
  } catch {
    return false
  } finally {
    database.close()
  }
}

/** Checks the ledger. */
function verdict(runs: readonly Holder[]): void {
  const ledger = new Ledger(join(folder, 'ledger.db'))
  const invoiced = ledger.invoices()
  ledger.close()
  const orders = readOrders().map(({ id }) => id)
  const missing = orders.filter(id => !invoiced.some(({ order }) => order === id)).length
  const twice = invoiced.length - new Set(invoiced.map(({ order }) => order)).size
  const decreases = invoiced.filter(({ token }, i) => token < (invoiced[i - 1]?.token ?? 0n)).length

  timeline.print(`\n${paint('bold', 'The ledger')}`)
  timeline.print(`  ${orders.length} orders, ${invoiced.length} invoices: ${missing} missing, ${twice} twice`)
  for (const { name, token } of runs) {
    const count = invoiced.filter(invoice => invoice.token === token).length
    timeline.print(`  ${name} wrote ${String(count).padStart(2)}, with token ${token}`)
    check(count > 0, `${name} has written some invoices`)
  }
  check(invoiced.length === orders.length && missing === 0 && twice === 0, 'the ledger has every order exactly once')
  check(decreases === 0, 'the tokens of the ledger never decrease')
  timeline.print(`  ${paint('green', 'Every order exactly once, despite a kill and a pause.')}`)
  timeline.print(`
${paint('bold', 'Try next')}, in two terminals
  ${COMMAND} run hello --wait forever -- sleep 20
  ${COMMAND} ls
`)
}

/** Shortens tokens to the digits that differ within two minutes: tokens are microseconds. */
function shortener(first: bigint): (token: bigint) => string {
  const [start, end] = [`${first}`, `${first + 120_000_000n}`]
  const same = [...start].findIndex((digit, i) => digit !== end[i])
  return token => `…${`${token}`.slice(same)}`
}

function at(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

async function until<T>(ask: () => T | Promise<T>, limit: number, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + limit
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    check(performance.now() < deadline, `${what}, within ${seconds(limit)}`)
    await sleep(20)
  }
}

function check(condition: unknown, expected: string): asserts condition {
  if (!condition) throw new Error(`expected that ${expected}`)
}

function reportFailure(error: unknown): void {
  timeline.end()
  console.error(`\n${paint('red', 'Failed:')} ${error instanceof Error ? error.message : error}`)
  for (const { name, lines } of replicas) console.error(`last output of ${name}:\n  ${lines.slice(-4).join('\n  ')}`)
}

function stop(code: number): void {
  if (stopping) return
  stopping = true
  void cleanUp().then(() => process.exit(code))
}

async function cleanUp(): Promise<void> {
  timeline.end()
  await Promise.all(replicas.map(replica => replica.destroy()))
  await locks.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
