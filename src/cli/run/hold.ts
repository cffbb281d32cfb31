import { existsSync } from 'node:fs'
import { tokensOf } from '../../fencing/tokens.ts'
import { subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { EXIT, Failure, messageOf } from '../failure.ts'
import type { Output } from '../output.ts'
import { type Signals, signalExit } from '../signals.ts'
import { Child, deadlineOf, type Outcome } from './child.ts'
import { type Held, leasesOf, namesOf } from './held.ts'
import type { HoldOptions } from './hold-options.ts'
import type { Reason } from './supervisor.ts'

/** Releases the lease after the command ended with `exit`. Resolves to why the lease was lost before, if it was. */
export type Release = (lease: Held, output: Output, exit: number) => Promise<unknown>

/** The result of `hold`. */
interface Holding {
  readonly exit: number
  readonly hasRun: boolean
  /** Is it impossible to run the command on this machine? The command's own exit code does not say so. */
  readonly isUnrunnable: boolean
}

/** The errors that stay until somebody changes the command. Others, such as EAGAIN, may be gone at the next attempt. */
const UNRUNNABLE: ReadonlySet<string> = new Set([
  ...['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EISDIR', 'ENAMETOOLONG', 'ELOOP'],
  ...['ENOEXEC', 'E2BIG', 'EINVAL'],
])

const [UNWATCHED, UNKNOWN] = ['UNWATCHED', 'UNKNOWN_COMMAND']

/** Throws on a platform without process groups: a command could not be ended with all that it started. */
export function checkPlatform(verb: string): void {
  if (process.platform !== 'win32') return
  const message = `holdfast ${verb} needs process groups, which Windows does not have: use WSL, a container, or the library`
  throw new Failure(EXIT.unavailable, 'UNSUPPORTED', message)
}

/** Runs the command while the lease is held, then releases the lease. */
export async function hold(
  lease: Held,
  url: string,
  options: HoldOptions,
  output: Output,
  signals: Signals,
  releaseAfter: Release = release,
): Promise<Holding> {
  let exit: number
  try {
    signals.stop.throwIfAborted()
    exit = exitOf(await watch(lease, url, options, output, signals), options.command, lease)
  } catch (error) {
    exit = output.fail(error)
    const code = error instanceof Failure ? error.code : ''
    const hasRun = code === UNWATCHED || code === UNKNOWN
    if (code === UNWATCHED) await releaseAfter(lease, output, exit)
    else if (hasRun) await runOut(lease, signals)
    else await release(lease, output)
    return { exit, hasRun, isUnrunnable: UNRUNNABLE.has(code) }
  }
  const isReported = lease.signal.aborted
  const loss = await releaseAfter(lease, output, exit)
  const ended = { exit, hasRun: true, isUnrunnable: false }
  if (!loss || exit === EXIT.lost) return ended
  // The command ended by itself, but another may have run at the same time.
  if (options.onLost !== 'ignore' || !isReported) {
    output.failed(
      'lost',
      `${messageOf(loss)}: another command may have run at the same time; this one ended with ${exit}`,
    )
  }
  return options.onLost === 'ignore' ? ended : { ...ended, exit: EXIT.lost }
}

/** Resolves when no process of the command is left. */
async function watch(
  lease: Held,
  url: string,
  options: HoldOptions,
  output: Output,
  signals: Signals,
): Promise<Outcome> {
  const { name, command, onLost, grace, ttl, max } = options
  const leases = leasesOf(lease)
  const [{ token }] = leases
  assertStartable(lease)
  const child = new Child(
    name,
    { command, env: environment(lease, url), deadline: deadlineOf(lease), onLost, grace, reserve: reserve(ttl) },
    {
      ending: reason =>
        output.failed('ending', `${why(reason, lease, options)}: the command is ended`, { name, reason }),
      denied: () =>
        output.failed('denied', 'a process of the command belongs to another user and cannot be ended', { name }),
    },
  )
  signals.forward(signal => child.signal(signal))
  const refuseSuspension = (): void =>
    output.failed('running', `${name} cannot be suspended: its lease would end`, { name })
  process.on('SIGTSTP', refuseSuspension)
  const stopListening = subscribe('heartbeat', event => {
    if (leases.includes(event.lease)) child.deadline(deadlineOf(lease))
  })
  const onLoss = (): void => {
    if (onLost !== 'ignore') {
      child.end('lost')
      return
    }
    const next = `the command goes on; the next holder has a higher token than ${token}`
    output.failed('lost', `${why('lost', lease, options)}: ${next}`, { name, token })
  }
  if (lease.signal.aborted) onLoss()
  else lease.signal.addEventListener('abort', onLoss)
  const limit = max === undefined ? undefined : setTimeout(() => child.end('max'), max)
  try {
    return await child.outcome
  } finally {
    clearTimeout(limit)
    process.off('SIGTSTP', refuseSuspension)
    stopListening()
    lease.signal.removeEventListener('abort', onLoss)
  }
}

/** Throws if the lease was lost since it was acquired. */
function assertStartable(lease: Held): void {
  try {
    lease.assertHeld()
  } catch (error) {
    throw notStarted(messageOf(error))
  }
}

function notStarted(cause: string): Failure {
  return new Failure(EXIT.lost, 'LEASE_LOST', `${cause}: the command was not started`)
}

function environment(held: Held, url: string): NodeJS.ProcessEnv {
  const [lease] = leasesOf(held)
  const tokens = tokensOf(held)
  return {
    ...process.env,
    HOLDFAST_NAME: lease.name,
    HOLDFAST_TOKEN: tokens[lease.name] ?? lease.token.toString(),
    HOLDFAST_TOKENS: JSON.stringify(tokens),
    ...('slot' in held && { HOLDFAST_SLOT: `${held.slot}` }),
    HOLDFAST_OWNER: lease.owner,
    HOLDFAST_STORE: url,
  }
}

/** Milliseconds from SIGKILL to the deadline: time for the kernel and a busy machine. */
function reserve(ttl: number): number {
  return Math.max(100, ttl * 0.05)
}

function why(reason: Reason, lease: Held, { name, max = 0 }: HoldOptions): string {
  if (reason === 'max') return `${name} was held for ${formatDuration(max)} (--max)`
  if (lease.signal.aborted) return messageOf(lease.signal.reason)
  const [first] = leasesOf(lease).toSorted((one, other) => one.remaining - other.remaining)
  return `the lease ${JSON.stringify(first?.name)} was not renewed and ends in ${formatDuration(lease.remaining)}`
}

function exitOf(outcome: Outcome, [command = '']: readonly string[], { signal: loss }: Held): number {
  if ('supervisorKilled' in outcome) {
    const why = 'the process that watches the command was killed'
    if (outcome.isEnded) throw new Failure(EXIT.lost, UNWATCHED, `${why} or did not react, so the command was ended`)
    const unknown = 'it is not known whether the command runs, so its lease is not released, and ends by its ttl'
    throw new Failure(EXIT.lost, UNKNOWN, `${why}: ${unknown}`)
  }
  if ('refused' in outcome) {
    const slow = 'the lease was over, or almost, before this machine could start a process (a longer --ttl may help)'
    throw notStarted(loss.aborted ? messageOf(loss.reason) : slow)
  }
  if ('failed' in outcome) throw cannotRun(command, outcome.failed)
  const { code, signal, reason } = outcome.ended
  if (reason) return EXIT.lost
  return signal ? signalExit(signal) : (code ?? EXIT.software)
}

function cannotRun(command: string, { code, message }: { code: string; message: string }): Failure {
  const missing = code === 'ENOENT' || code === 'ENOTDIR'
  if (missing && command.includes('/') && existsSync(command)) {
    return new Failure(
      EXIT.notExecutable,
      code,
      `the first line of ${command} names an interpreter that does not exist`,
    )
  }
  if (missing) {
    const hint = /[\s|&;<>]/.test(command)
      ? `; COMMAND is one program and its arguments; for a shell command line use: sh -c '${command.replaceAll("'", "'\\''")}'`
      : ''
    return new Failure(EXIT.notFound, code, `${command}: command not found${hint}`)
  }
  if (code === 'EACCES') return new Failure(EXIT.notExecutable, code, `${command} is not executable (see chmod +x)`)
  return new Failure(EXIT.notExecutable, code, `${command} cannot be executed: ${message}`)
}

/** Waits until the lease ends by its ttl. A signal ends this process at once, so that nothing releases the lease. */
async function runOut(lease: Held, signals: Signals): Promise<void> {
  for (const each of leasesOf(lease)) each.stopRenewing()
  if (signals.received) process.exit(EXIT.lost)
  signals.forward(signal => process.exit(signalExit(signal)))
  await lease.ended
}

/** Releases the lease. Resolves to why it was lost before, if it was. */
export async function release(lease: Held, output: Output): Promise<unknown> {
  const result = await lease.release()
  if (result === 'unknown') {
    const names = namesOf(lease)
    const message = `the store did not confirm the release of ${names}: it is free after its ttl at the latest`
    output.failed('release_failed', message, { name: names })
  }
  return result === 'lost' ? lossOf(lease) : undefined
}

/** Why the lease was lost. The reason of its signal may be an earlier, different one. */
function lossOf(lease: Held): unknown {
  try {
    lease.assertHeld()
    return undefined
  } catch (error) {
    return error
  }
}
