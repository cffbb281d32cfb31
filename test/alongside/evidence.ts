import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Runs `judge` with an empty file, which no other attempt has. If it fails, the file is kept, and the message of the error
 * names it.
 */
export async function withEvidence(what: string, judge: (file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-alongside-'))
  const file = join(folder, what.replaceAll(/\W+/g, '-'))
  writeFileSync(file, '')
  try {
    await judge(file)
  } catch (error) {
    if (error instanceof Error) error.message += ` (the evidence is kept in ${file})`
    throw error
  }
  rmSync(folder, { recursive: true })
}
