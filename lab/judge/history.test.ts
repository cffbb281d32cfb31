import { spawn } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Recorder, readHistory } from './history.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-history-'))
  path = join(folder, 'history.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('events of several recorders are read in order of time', () => {
  const origin = process.hrtime.bigint()
  const recorders = [new Recorder(path, origin), new Recorder(path, origin)] as const
  recorders[0].write('started', { client: 1, pid: 11 }, 2e6)
  recorders[1].write('started', { client: 2, pid: 12 }, 1e6)
  recorders[0].write('ended', {})
  for (const recorder of recorders) recorder.close()
  const history = readHistory(path)
  expect(history.map(({ kind, at }) => [kind, at]).slice(1)).toEqual([
    ['started', 1e6],
    ['started', 2e6],
  ])
  expect(history[0]).toMatchObject({ kind: 'ended', at: expect.any(Number) })
})

test('events of a killed process are not lost', async () => {
  const source = `import { Recorder } from ${JSON.stringify(new URL('./history.ts', import.meta.url).href)}
    const recorder = new Recorder(${JSON.stringify(path)}, process.hrtime.bigint())
    for (let client = 0; client < 1000; client += 1) recorder.write('started', { client, pid: process.pid })
    process.kill(process.pid, 'SIGKILL')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: 'inherit' })
  await new Promise(resolve => child.once('exit', resolve))
  expect(child.signalCode).toBe('SIGKILL')
  expect(readHistory(path)).toHaveLength(1_000)
})

test('an incomplete last line is ignored; any other line that is not an event is an error', () => {
  writeFileSync(path, '{"kind":"ended","at":1}\n{"kind":"en')
  expect(readHistory(path)).toEqual([{ kind: 'ended', at: 1 }])
  appendFileSync(path, '\n')
  expect(() => readHistory(path)).toThrow(/^line 2 of .*history.jsonl is not an event of a history: .*kind/)
})
