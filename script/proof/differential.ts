import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** The environment of the differential test: it plays random histories for `ms`. `seed`: decides which. */
export function environmentOf(ms: number, seed: number): Readonly<Record<string, string>> {
  return { HOLDFAST_DIFFERENTIAL_MINUTES: String(ms / 60_000), HOLDFAST_DIFFERENTIAL_SEED: String(seed) }
}

/** Ends the name of the test that injects faults. */
export const FUZZ: string = 'while faults happen'

/** The environment of the fuzz test. */
export function fuzzEnvironmentOf(ms: number, seed: number): Readonly<Record<string, string>> {
  return { HOLDFAST_FUZZ_MINUTES: String(ms / 60_000), HOLDFAST_DIFFERENTIAL_SEED: String(seed) }
}

/** The differential test of the engine. `undefined`: it has none. */
export function testOf(engine: string): string | undefined {
  const path = `test/differential/${engine}.test.ts`
  return existsSync(join(ROOT, path)) ? path : undefined
}

/** Runs the test in this environment. Resolves to whether the engine answered all as the rules of a name do. */
export async function playHistories(
  test: string,
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
  only: readonly string[] = [],
): Promise<boolean> {
  const args = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', test, '--reporter=dot', ...only]
  const env = { ...process.env, ...environment }
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'inherit', 'inherit'] })
  const stop = (): boolean => child.kill('SIGINT')
  signal.addEventListener('abort', stop)
  const [code] = await once(child, 'exit')
  signal.removeEventListener('abort', stop)
  return code === 0
}
