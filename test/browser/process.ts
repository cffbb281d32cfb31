import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** Runs a file of TypeScript in a process of its own, which ends with the test. `line`: the first that it prints. */
export function run(file: string, ...args: string[]): { child: ChildProcess; line: Promise<string> } {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  const lines = createInterface(child.stdout as NodeJS.ReadableStream)
  return { child, line: once(lines, 'line').then(([line]) => String(line)) }
}
