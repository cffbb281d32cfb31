/**
 * Five replicas of the invoice run (job.ts) at once, under `holdfast run`. The one that runs is killed; the next is
 * frozen past its ttl and resumed. The ledger has every order exactly once, or this ends with exit code 1.
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
const NAMES = ['replica-1', 'replica-2', 'replica-3', 'replica-4', 'replica-5']

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
const store = `sqlite:${join(folder, 'leases.db')}`
const total = readOrders().length
const timeline = new Timeline(NAMES)
const locks = await connect(store)
let replicas: Replica[] = []

let stopping = false

for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
  process.on(signal, () => stop(code))
process.stdout.on('error', () => stop(1)) // whoever read this has gone
try {
  await story()
} catch (error) {
  if (!stopping) tellFailure(error)
  process.exitCode = 1
} finally {
  await cleanUp()
}

async function story(): Promise<void> {
  timeline.print(`${paint('bold', 'Five replicas of one nightly job, and one of them runs at a time.')}
${total} orders to invoice. Each replica is started with

  holdfast run ${NAME} --ttl 3s --wait forever -- node job.ts
`)
  timeline.say('start', 'all five', 'start at once')
  replicas = NAMES.map(
    name =>
      new Replica(
        name,
        [`${root}/script/holdfast`, 'run', NAME, '--ttl', '3s', '--wait', 'forever', '--owner', name].concat(
          '--',
          `${root}/script/node`,
          fileURLToPath(new URL('job.ts', import.meta.url)),
        ),
        folder,
        { ...process.env, HOLDFAST_STORE: store },
      ),
  )

  // One runs, the others are told who holds it.
  const first = await nextHolder(0n)
  const short = shortener(first.token)
  timeline.say('run', first.name, `holds the lease, with token ${first.token}`)
  await Promise.all(others(first).map(replica => told(replica, first.name)))

  // Killed half way.
  await invoices(first.replica, total / 2)
  first.replica.kill()
  const killedAt = performance.now()
  timeline.say('kill', first.name, 'killed with SIGKILL, half way')
  await until(() => !first.replica.alive, TTL, `${first.name}'s job ends with it`)
  timeline.say('kill', first.name, 'its job is ended with it, by the supervisor')

  const second = await nextHolder(first.token)
  const after = performance.now() - killedAt
  timeline.say(
    'run',
    second.name,
    `takes over ${seconds(after)} later, token ${short(second.token)} > ${short(first.token)}`,
  )
  check(after <= TTL + 1_000, `a replica takes over within ${seconds(TTL + 1_000)}, not ${seconds(after)}`)

  // Frozen past its ttl, as a paused container or virtual machine is.
  await invoices(second.replica, Math.round(total * 0.7))
  await freeze(second.replica)
  timeline.say('freeze', second.name, 'frozen whole, as in a paused container')
  const third = await nextHolder(second.token)
  timeline.say('run', third.name, `takes over, token ${short(third.token)} > ${short(second.token)}`)
  await invoices(third.replica, second.replica.invoiced + 5)

  // The job first, as if its supervisor, which would end it, came too late: only the ledger stands in its way.
  timeline.say('resume', second.name, 'resumed; its job knows nothing of this, and writes')
  second.replica.resume('job')
  const refused = await until(() => second.replica.said(/^refused: (.*)/), 5_000, `the ledger refuses ${second.name}`)
  timeline.say('refuse', second.name, `refused by the ledger: token ${short(second.token)} < ${short(third.token)}`)
  check(refused[1]?.includes(`${third.token}`), `the refusal names token ${third.token}`)
  second.replica.resume('all')
  const exit = await second.replica.ended
  check(exit === 3 || exit === 76, `${second.name} ends with 3 (refused) or 76 (lease lost), not ${exit}`)

  // The rest of the orders, and two more runs that find nothing to do.
  await invoices(third.replica, total)
  timeline.say('done', third.name, `all ${total} orders are invoiced`)
  for (const replica of replicas.filter(({ name }) => name !== first.name && name !== second.name)) {
    const code = await replica.ended
    check(code === 0, `${replica.name} ends with 0, not ${code}`)
    if (replica !== third.replica) timeline.say('done', replica.name, 'has its turn, and finds nothing to do')
  }
  timeline.end()
  verdict([first, second, third])
}

interface Holder {
  readonly name: string
  readonly token: bigint
  readonly replica: Replica
}

/** Who holds the lease with a token above this. */
async function nextHolder(token: bigint): Promise<Holder> {
  return await until(
    async () => {
      const { holder } = await locks.inspect(NAME)
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

async function told(replica: Replica, holder: string): Promise<void> {
  const pattern = new RegExp(`held by ${holder} for another ([\\d.]+ m?s)`)
  const line = await until(
    () => replica.said(pattern),
    20_000,
    `${replica.name} is told that ${holder} holds the lease`,
  )
  timeline.say('wait', replica.name, `waits, told: held by ${holder} for another ${line[1]}`)
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
 * Between two transactions: a process of this machine that is frozen inside one keeps the file locked, and nobody else
 * can do anything until it goes on. That is a limit of SQLite, not the subject here.
 */
async function freeze(replica: Replica): Promise<void> {
  for (;;) {
    replica.freeze()
    await sleep(20)
    if (['leases.db', 'ledger.db'].every(isUnlocked)) return
    replica.resume('all')
    await sleep(20)
  }
}

function isUnlocked(file: string): boolean {
  const database = new DatabaseSync(join(folder, file))
  try {
    // Others write too, but only for a few milliseconds at a time.
    database.exec('pragma busy_timeout = 500; begin immediate; rollback')
    return true
  } catch {
    return false
  } finally {
    database.close()
  }
}

/** Asks the ledger, not the replicas. */
function verdict(runs: readonly Holder[]): void {
  const ledger = new Ledger(join(folder, 'ledger.db'))
  const invoiced = ledger.invoices()
  ledger.close()
  const orders = readOrders().map(({ id }) => id)
  const missing = orders.filter(id => !invoiced.some(({ order }) => order === id)).length
  const twice = invoiced.length - new Set(invoiced.map(({ order }) => order)).size
  const falling = invoiced.filter(({ token }, i) => token < (invoiced[i - 1]?.token ?? 0n)).length

  timeline.print(`\n${paint('bold', 'The ledger says')}`)
  timeline.print(`  ${orders.length} orders, ${invoiced.length} invoices: ${missing} missing, ${twice} twice`)
  for (const { name, token } of runs) {
    const count = invoiced.filter(invoice => invoice.token === token).length
    timeline.print(`  ${name} wrote ${String(count).padStart(2)}, with token ${token}`)
    check(count > 0, `${name} has written some invoices`)
  }
  check(invoiced.length === orders.length && missing === 0 && twice === 0, 'the ledger has every order exactly once')
  check(falling === 0, 'the tokens of the ledger never fall')
  timeline.print(`  ${paint('green', 'Every order exactly once, in spite of a kill and a freeze.')}`)
  timeline.print(`
${paint('bold', 'Try next')}, in two terminals
  ./script/holdfast run hello --wait forever -- sleep 20
  ./script/holdfast ls
`)
}

/** The last digits of a token, enough to tell those of one evening apart: they are microseconds. */
function shortener(first: bigint): (token: bigint) => string {
  const [start, end] = [`${first}`, `${first + 120_000_000n}`]
  const same = [...start].findIndex((digit, i) => digit !== end[i])
  return token => `…${`${token}`.slice(same)}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

async function until<T>(ask: () => T | Promise<T>, limit: number, what: string): Promise<NonNullable<T>> {
  const giveUp = performance.now() + limit
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    check(performance.now() < giveUp, `${what}, within ${seconds(limit)}`)
    await sleep(20)
  }
}

function check(condition: unknown, expected: string): asserts condition {
  if (!condition) throw new Error(`expected that ${expected}`)
}

function tellFailure(error: unknown): void {
  timeline.end()
  console.error(`\n${paint('red', 'Not as it should be:')} ${error instanceof Error ? error.message : error}`)
  for (const { name, lines } of replicas) console.error(`${name} said last:\n  ${lines.slice(-4).join('\n  ')}`)
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
