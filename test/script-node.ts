import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** The root folder of this checkout. */
export const ROOT: string = join(import.meta.dirname, '..')

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
