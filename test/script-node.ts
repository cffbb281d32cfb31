import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** The root folder of this checkout. */
export const ROOT: string = join(import.meta.dirname, '..')

/** For programs in a folder that only this run has: what they leave in the cache of compiled code is never read again. */
export const UNCACHED: NodeJS.ProcessEnv = { NODE_DISABLE_COMPILE_CACHE: '1' }

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly folder: string
  readonly env?: NodeJS.ProcessEnv
  /** An abort sends SIGINT, like Ctrl-C. */
  readonly interrupt?: AbortSignal
  /** Called with all standard output so far, each time that more arrives. */
  readonly onOutput?: (stdout: string) => void
}

/** Runs a program of this checkout as its users do: `./script/node FILE ARGUMENTS`. */
export function scriptNode(args: readonly string[], options: RunOptions): Promise<Outcome> {
  const { FORCE_COLOR: _colour, NODE_OPTIONS: _loader, ...env } = process.env
  return new Promise((resolve, reject) => {
    const child = spawn(join(ROOT, 'script/node'), args, { cwd: options.folder, env: { ...env, ...options.env } })
    const outcome = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        outcome[stream] += text
        if (stream === 'stdout') options.onOutput?.(outcome.stdout)
      })
    }
    options.interrupt?.addEventListener('abort', () => child.kill('SIGINT'), { once: true })
    child.on('error', reject)
    child.on('close', code => resolve({ code, ...outcome }))
  })
}
