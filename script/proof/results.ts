import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Verdict } from '../../lab/judge/verdict.ts'
import { page } from './page.ts'
import type { Proof } from './proof.ts'

/** The folder with the results of long runs. */
export const FOLDER: string = join(import.meta.dirname, '../../docs/proof')

/** Milliseconds after which a lock is stale. A live process holds it only briefly. */
const STALE = 10_000

export function proofOf(
  verdict: Verdict,
  about: Pick<Proof, 'programme' | 'command' | 'commit' | 'machine' | 'sources'>,
): Proof {
  const { run, outcome, duration, rows, counts, overlaps, margins, recoveries, explanation } = verdict
  const { engine, names, faults: _, shared: __, ...settings } = run
  const short = rows.map(({ promise, outcome, broken, missing, violations: [first] }) => ({
    ...{ promise, outcome, broken, missing },
    ...(first && { first: first.what }),
  }))
  const date = new Date().toISOString().slice(0, 16)
  return {
    ...{ engine, ...about, date, outcome, run: { engine, ...settings, names: names.length }, duration },
    ...{ rows: short, counts, overlaps, margins, recoveries, explanation },
  }
}

/** All results in the folder; none if it does not exist. */
export function proofs(folder: string = FOLDER): Proof[] {
  try {
    return JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')) as Proof[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Replaces the last result of its engine and programme, and writes the page. Safe with concurrent processes. */
export async function addProof(proof: Proof, folder: string): Promise<void> {
  const lock = join(folder, '.lock')
  await lockAt(lock)
  try {
    const others = proofs(folder).filter(
      ({ engine, programme }) => engine !== proof.engine || programme !== proof.programme,
    )
    const all = [...others, proof].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
    replace(join(folder, 'results.json'), `${JSON.stringify(all, null, 1)}\n`)
    replace(join(folder, 'README.md'), page(all))
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

async function lockAt(folder: string): Promise<void> {
  for (let started = performance.now(); ; await pause(20)) {
    try {
      return mkdirSync(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    if (performance.now() - started < STALE) continue
    rmSync(folder, { recursive: true, force: true }) // does nothing if another process removed it
    started = performance.now()
  }
}

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

function keyOf({ engine, programme }: Proof): string {
  return `${engine} ${programme}`
}
