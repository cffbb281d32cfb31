import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { longestStall } from './stalls.ts'

test('finds the longest stall since a test began', () => {
  const file = join(newFolder('stalls'), 'stalls')
  writeFileSync(file, '')
  expect(longestStall(file, 0)).toBe(0)
  writeFileSync(file, '1000 300\n2000 60\n3000 90\n')
  expect(longestStall(file, 0)).toBe(300)
  expect(longestStall(file, 1_500)).toBe(90)
  expect(longestStall(file, 3_001)).toBe(0)
})

test('the monitor notes for how long it was paused', async () => {
  const file = join(newFolder('stalls'), 'stalls')
  writeFileSync(file, '')
  const began = Date.now()
  const monitor = fork(join(import.meta.dirname, 'monitor.ts'), [file])
  onTestFinished(() => void monitor.kill('SIGKILL'))
  await vi.waitFor(
    async () => {
      monitor.kill('SIGSTOP')
      await sleep(200)
      monitor.kill('SIGCONT')
      await sleep(50)
      expect(longestStall(file, began)).toBeGreaterThan(100)
    },
    { timeout: 30_000 },
  )
})
