import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Names, startNames } from '../names.ts'

let names: Names
beforeEach(() => {
  names = startNames()
})
afterEach(() => names.stop())

/** What a new process finds, until it has found the last of these hosts. */
function found(...hosts: readonly string[]): string {
  // Its end by itself would wait for pending look-ups.
  const code = `
    for (const host of ${JSON.stringify(hosts)}) require('node:dns').lookup(host, (error, address) => {
      require('node:fs').writeSync(1, host + ' ' + (error?.code ?? address) + '\\n')
      if (host === ${JSON.stringify(hosts.at(-1))}) process.kill(process.pid, 'SIGKILL')
    })`
  return String(spawnSync(process.execPath, ['-e', code], { env: { ...process.env, ...names.env } }).stdout)
}

test('the names of servers are found, and other names as ever', () => {
  expect(found(names.of(1))).toBe('server-1.holdfast.test 127.0.0.1\n')
  expect(found('localhost')).toMatch(/^localhost (127\.0\.0\.1|::1)\n$/)
})

test('nothing answers for a silent name, while others are found', () => {
  names.silence(names.of(1))
  expect(found(names.of(1), names.of(2))).toBe('server-2.holdfast.test 127.0.0.1\n')
  names.answer(names.of(1))
  expect(found(names.of(1))).toBe('server-1.holdfast.test 127.0.0.1\n')
})
