import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as support from '../../src/cli/lab-support.ts'
import { folder, holdfast } from '../../src/cli/test/holdfast.ts'
import type { CommandLine } from './command-line.ts'

describe('a wrong option is refused, with what is expected', () => {
  const wrong: [string, string[], RegExp][] = [
    ['no engine', [], /--lab ENGINE is missing, one of sqlite, redis/],
    ['an engine that is mistyped', ['--lab', 'redlok'], /did you mean redlock\?/],
    ['two subjects', ['--lab', 'redis', '--store', 'sqlite:a'], /give one of them/],
    ['an unknown fault', ['--lab', 'redis', '--faults', 'cut,meteor'], /there is no fault meteor; there are/],
    ['a fault that a file does not have', ['--lab', 'sqlite', '--faults', 'cut'], /there is no fault cut of a file/],
    ['a duration of nonsense', ['--lab', 'redis', '--duration', 'long'], /--duration long is not a duration/],
    ['a duration that is too short', ['--lab', 'redis', '--duration', '1s'], /expected from 3 ttls/],
    ['a seed that is none', ['--lab', 'redis', '--seed', 'x'], /--seed x: expected a whole number from 0/],
    [
      'a folder that is missing',
      ['--lab', 'redis', '--report', '/no/such/a.html'],
      /--report .*: the folder \/no\/such is missing or not writable/,
    ],
    ['a known violation of external servers', ['--store', 'sqlite:a', '--known-violation'], /needs --lab/],
    [
      'a known violation with other faults',
      ['--lab', 'redis', '--known-violation', '--faults', 'cut'],
      /remove --faults/,
    ],
    ['sharing on external servers', ['--store', 'sqlite:a', '--sharing'], /needs --lab/],
    ['too few clients', ['--lab', 'redis', '--clients', '1'], /--clients 1: expected a whole number from 2/],
  ]
  test.each(wrong)('%s', async (_, args, message) => {
    const { code, err } = await holdfast(['prove', ...args])
    expect(code).toBe(64)
    expect(err).toMatch(message)
  })
})

test('the verdict, its page, and the command that repeats the run', { timeout: 60_000 }, async () => {
  const [events, page] = [join(folder, 'verdict.jsonl'), join(folder, 'verdict.html')]
  const args = [
    '--lab',
    'sqlite',
    '--ttl',
    '500ms',
    '--duration',
    '6s',
    '--seed',
    '9',
    '--clients',
    '4',
    '--names',
    '2',
  ]
  const { code, out } = await holdfast(['prove', ...args, '--events', events, '--report', page])
  expect({ code, out }).toMatchObject({ code: expect.toBeOneOf([0, 2]) })
  expect(out).toMatch(/Safety: mutual exclusion as the resource sees it/)
  expect(out).toContain(
    'holdfast prove --lab sqlite --seed 9 --duration 6000ms --ttl 500ms --clients 4 --names 2 --faults ',
  )
  expect(readFileSync(page, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\s*$/i)
  const again = await holdfast(['prove', ...args, '--events', events])
  expect(again).toMatchObject({ code: 64, err: expect.stringMatching(/the file exists/) })
})

test('without a fence stale writes are accepted, and the violation is explained', { timeout: 60_000 }, async () => {
  const args = ['--lab', 'sqlite', '--ttl', '500ms', '--duration', '8s', '--names', '2', '--no-fence']
  // On a machine that stands still, no pause may have met a write.
  let [code, out]: [number | null, string] = [2, '']
  for (let seed = 7; code === 2 && seed < 10; seed += 1)
    ({ code, out } = await holdfast(['prove', ...args, '--seed', `${seed}`, '--faults', 'client-pause', '--json']))
  expect(code).toBe(1)
  const verdict = JSON.parse(out) as {
    outcome: string
    explanation: string[]
    rows: { promise: string; broken: number }[]
  }
  expect(verdict.outcome).toBe('violated')
  expect(verdict.explanation.length).toBeGreaterThan(2)
})

test('the command line provides what the lab declares', () => {
  const provided: CommandLine = support
  expect(Object.keys(provided).length).toBeGreaterThan(0)
})
