import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { withEvidence } from './evidence.ts'

test('a repeated attempt does not see the file of the failed one, which is kept and named', async () => {
  const files: string[] = []
  const attempt = (): Promise<void> =>
    withEvidence('a, b', async file => {
      files.push(file)
      appendFileSync(file, 'line\n')
      expect(readFileSync(file, 'utf8')).toBe(files.length === 1 ? '' : 'line\n')
    })
  const error: Error = await attempt().catch(error => error)
  await attempt()
  const [failed = '', passed = ''] = files
  onTestFinished(() => rmSync(dirname(failed), { recursive: true }))
  expect(error.message).toContain(failed)
  expect(readFileSync(failed, 'utf8')).toBe('line\n')
  expect(existsSync(passed)).toBe(false)
})
