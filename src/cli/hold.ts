import { existsSync } from 'node:fs'
import { LeaseError } from '../errors.ts'
import { type Lease, subscribe } from '../index.ts'
import { Child, deadlineOf, type Outcome } from './child.ts'
import { formatDuration } from './duration.ts'
import { EXIT, Failure } from './failure.ts'
import type { Output } from './output.ts'
import type { RunOptions } from './run-options.ts'
import { type Signals, signalExit } from './signals.ts'
import type { Reason } from './supervisor.ts'

/** Runs the command under the lease, then gives the lease back. Answers the exit code. */
export async function hold(
  lease: Lease,
  url: string,
  options: RunOptions,
  output: Output,
  signals: Signals,
): Promise<number> {
  let exit: number = EXIT.software
  try {
    signals.stop.throwIfAborted()
    exit = exitOf(await watch(lease, url, options, output, signals), options.command)
  } catch (error) {
    exit = output.fail(error)
  }
  return release(lease, exit, options, output)
}

/** Resolves when nothing is left of the command. */
async function watch(
  lease: Lease,
  url: string,
  options: RunOptions,
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
  process.on('SIGTSTP', () => output.warn('running', `${name} cannot be suspended: its lease would end`, { name }))
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
  lease.signal.addEventListener('abort', onLoss)
  const limit = max === undefined ? undefined : setTimeout(() => child.end('max'), max)
  try {
    return await child.outcome
  } finally {
    clearTimeout(limit)
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

function why(reason: Reason, lease: Lease, { name, max = 0 }: RunOptions): string {
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
  if (missing) return new Failure(EXIT.notFound, code, `${command}: command not found`)
  if (code === 'EACCES') return new Failure(EXIT.notExecutable, code, `${command} is not executable (see chmod +x)`)
  return new Failure(EXIT.notExecutable, code, `${command} cannot be run: ${message}`)
}

/** Answers the exit code: a lease that was gone before the command ended makes it 76. */
async function release(lease: Lease, exit: number, { name, onLost }: RunOptions, output: Output): Promise<number> {
  const told = lease.signal.aborted
  try {
    await lease.release()
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'LEASE_LOST') {
      output.warn('release_failed', `${name} was not given back and is free after its ttl: ${text(error)}`, { name })
    } else if (!told) {
      const meaning = `another may have run at the same time; the command ended with ${exit}`
      output.warn('lost', `${text(error)}: ${meaning}`, { name })
      return onLost === 'ignore' ? exit : EXIT.lost
    }
  }
  return exit
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
