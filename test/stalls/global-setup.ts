import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The file of the stalls of the machine. */
    readonly stalls: string
  }
}

/** Watches the machine while tests run, and gives them a folder for what they need only once. */
export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(project.config.env.TMPDIR ?? tmpdir(), 'stalls-'))
  process.env.HOLDFAST_TEMPLATES = folder
  const file = join(folder, 'stalls')
  writeFileSync(file, '')
  const monitor = fork(join(import.meta.dirname, 'monitor.ts'), [file])
  monitor.unref()
  project.provide('stalls', file)
  return () => {
    monitor.kill('SIGKILL') // first: it writes to the folder
    rmSync(folder, { recursive: true })
  }
}
