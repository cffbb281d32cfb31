import { existsSync } from 'node:fs'
import { type Lease, subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Output } from '../output.ts'
import { type Signals, signalExit } from '../signals.ts'
import { Child, deadlineOf, type Outcome } from './child.ts'
import type { HoldOptions } from './hold-options.ts'
import type { Reason } from './supervisor.ts'

/** How the lease is given back after the command ended with `exit`; answers why it was lost before, if it was. */
export type End = (lease: Lease, output: Output, exit: number) => Promise<unknown>

/** Throws where a command cannot be ended together with all that it started. */
export function checkPlatform(verb: string): void {
  if (process.platform !== 'win32') return
  const message = `holdfast ${verb} needs process groups: it runs on Linux and macOS`
  throw new Failure(EXIT.unavailable, 'UNSUPPORTED', message)
}

/** Runs the command under the lease, then gives the lease back. Answers the exit code. */
export async function hold(
  lease: Lease,
  url: string,
  options: HoldOptions,
  output: Output,
  signals: Signals,
  end: End = release,
): Promise<number> {
  let exit: number
  try {
    signals.stop.throwIfAborted()
    exit = exitOf(await watch(lease, url, options, output, signals), options.command)
  } catch (error) {
    exit = output.fail(error)
    const hasRun = exit === EXIT.lost // and was killed with its supervisor
    await (hasRun ? end(lease, output, exit) : release(lease, output))
    return exit
  }
  const told = lease.signal.aborted
  const loss = await end(lease, output, exit)
  if (!loss || exit === EXIT.lost) return exit
  // The command ended by itself, perhaps well, but it was not alone for certain.
  if (options.onLost !== 'ignore' || !told) {
    output.warn('lost', `${text(loss)}: another may have run at the same time; the command ended with ${exit}`)
  }
  return options.onLost === 'ignore' ? exit : EXIT.lost
}

/** Resolves when nothing is left of the command. */
async function watch(
  lease: Lease,
  url: string,
  options: HoldOptions,
  output: Output,
  signals: Signals,
): Promise<Outcome> {
  const { name, command, onLost, grace, ttl, max } = options
  const child = new Child(
    name,
    { command, env: environment(lease, url), deadline: deadlineOf(lease), onLost, grace, reserve: reserve(ttl) },
    {
      ending: reason => output.warn('ending', `${why(reason, lease, options)}: the command is ended`, { name, reason }),
      denied: () =>
        output.warn('denied', 'a process of the command belongs to another user and cannot be ended', { name }),
    },
  )
  signals.forward(signal => child.signal(signal))
  const refuse = (): void => output.warn('running', `${name} cannot be suspended: its lease would end`, { name })
  process.on('SIGTSTP', refuse)
  const stopListening = subscribe('heartbeat', event => {
    if (event.lease === lease) child.deadline(deadlineOf(lease))
  })
  const onLoss = (): void => {
    if (onLost !== 'ignore') {
      child.end('lost')
      return
    }
    const next = `the command goes on, and the next holder's token outranks its ${lease.token}`
    output.warn('lost', `${why('lost', lease, options)}: ${next}`, { name, token: lease.token })
  }
  if (lease.signal.aborted) onLoss()
  else lease.signal.addEventListener('abort', onLoss)
  const limit = max === undefined ? undefined : setTimeout(() => child.end('max'), max)
  try {
    return await child.outcome
  } finally {
    clearTimeout(limit)
    process.off('SIGTSTP', refuse)
    stopListening()
    lease.signal.removeEventListener('abort', onLoss)
  }
}

function environment(lease: Lease, url: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOLDFAST_NAME: lease.name,
    HOLDFAST_TOKEN: lease.token.toString(),
    HOLDFAST_OWNER: lease.owner,
    HOLDFAST_STORE: url,
  }
}

/** Milliseconds before the deadline at which SIGKILL is sent: what the kernel and a busy machine may need. */
function reserve(ttl: number): number {
  return Math.max(100, ttl * 0.05)
}

function why(reason: Reason, lease: Lease, { name, max = 0 }: HoldOptions): string {
  if (reason === 'max') return `${name} was held for ${formatDuration(max)} (--max)`
  if (lease.signal.aborted) return text(lease.signal.reason)
  return `the lease of ${name} was not renewed and ends in ${formatDuration(lease.remaining)}`
}

function exitOf(outcome: Outcome, [command = '']: readonly string[]): number {
  if ('unwatched' in outcome) {
    throw new Failure(EXIT.lost, 'UNWATCHED', 'the process that watches the command was killed: the command is ended')
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
      `${command} names an interpreter that does not exist in its first line`,
    )
  }
  if (missing) {
    const hint = /[\s|&;<>]/.test(command)
      ? `; COMMAND is one program and its arguments; for a shell command line use: sh -c '${command.replaceAll("'", "'\\''")}'`
      : ''
    return new Failure(EXIT.notFound, code, `${command}: command not found${hint}`)
  }
  if (code === 'EACCES') return new Failure(EXIT.notExecutable, code, `${command} is not executable (see chmod +x)`)
  return new Failure(EXIT.notExecutable, code, `${command} cannot be run: ${message}`)
}

/** Answers why the lease was lost before, if it was. */
export async function release(lease: Lease, output: Output): Promise<unknown> {
  const end = await lease.release()
  if (end === 'unknown') {
    const message = `the store did not confirm that ${lease.name} was released: it is free after its ttl at the latest`
    output.warn('release_failed', message, { name: lease.name })
  }
  return end === 'lost' ? lossOf(lease) : undefined
}

/** Not the reason of its signal: another abort may have come before. */
function lossOf(lease: Lease): unknown {
  try {
    lease.assertHeld()
    return undefined
  } catch (error) {
    return error
  }
}

export function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
