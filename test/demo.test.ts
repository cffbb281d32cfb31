import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT, scriptNode } from './script-node.ts'

const DEMO = join(ROOT, 'examples/invoices/demo.ts')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('the demo shows a kill, a pause, and a ledger with every order once', async () => {
  const { code, stdout, stderr } = await scriptNode([DEMO], { folder, env: { TMPDIR: folder } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).not.toContain('\u001b') // not a terminal
  expect(stdout).toMatch(/the others +wait: held by replica-\d,? for another [\d.]+ s\n/)
  expect(stdout).toMatch(/takes over [\d.]+ s later, with a higher token: …\d+\n/)
  expect(stdout).toMatch(/is refused: the ledger has seen token …\d+\n/)
  expect(stdout).toContain('60 orders, 60 invoices: 0 missing, 0 twice')

  const runs = [...stdout.matchAll(/replica-\d wrote +(\d+), with token (\d{16})\n/g)]
  const [counts, tokens] = [runs.map(run => Number(run[1])), runs.map(run => BigInt(run[2] as string))]
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(60)
  expect(tokens).toHaveLength(3)
  expect(tokens.filter((token, i) => token <= (tokens[i - 1] ?? 0n))).toEqual([])
  expect(readdirSync(folder)).toEqual([])
}, 90_000)

test('a demo that is interrupted while a replica is paused leaves no process and no file', async () => {
  const control = new AbortController()
  const onOutput = (stdout: string): void => {
    if (stdout.includes('is paused')) control.abort()
  }
  const outcome = await scriptNode([DEMO], { folder, env: { TMPDIR: folder }, interrupt: control.signal, onOutput })
  expect(outcome).toMatchObject({ code: 130, stderr: '' })
  expect(readdirSync(folder)).toEqual([])
}, 90_000)
