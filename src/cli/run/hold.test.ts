import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { testLocks } from '../../testing/index.ts'
import { Output } from '../output.ts'
import type { Signals } from '../signals.ts'
import { folder, HOLDFAST } from '../test/holdfast.ts'
import { hold } from './hold.ts'
import type { HoldOptions } from './hold-options.ts'

const signals = { stop: new AbortController().signal, received: false, forward() {} } as unknown as Signals
const { argv, execPath } = process

let written: string

beforeEach(() => {
  written = ''
  vi.spyOn(process.stderr, 'write').mockImplementation(text => {
    written += text
    return true
  })
  process.argv = [execPath, HOLDFAST.at(-1) as string] // the supervisor is started from there
})

afterEach(() => {
  vi.restoreAllMocks()
  Object.assign(process, { argv, execPath })
})

function options(onLost: HoldOptions['onLost']): HoldOptions {
  const none = { store: undefined, json: undefined, quiet: undefined, note: undefined, owner: undefined }
  return { ...none, name: 'job', command: ['touch', join(folder, 'ran')], ttl: 10_000, grace: 1_000, onLost }
}

test.each(['kill', 'ignore'] as const)(
  'a lease that is lost before the start: no start, with --on-lost %s',
  async onLost => {
    const locks = testLocks()
    const lease = await locks.acquire('job')
    await locks.lose('job')
    const after = vi.fn<() => Promise<undefined>>(async () => undefined)
    const held = await hold(lease, 'memory:', options(onLost), new Output(), signals, after)
    expect(held).toEqual({ exit: 76, hasRun: false, isUnrunnable: false })
    expect(existsSync(join(folder, 'ran'))).toBe(false)
    expect(written).toMatch(/^holdfast: the lease "job" .*: the command was not started\n$/)
    expect(after, 'nothing has run, so --at-least does not count').not.toHaveBeenCalled()
  },
)

test('a supervisor that is killed while it starts the command leaves the lease to its ttl', async () => {
  const locks = testLocks()
  const lease = await locks.acquire('job')
  const killed = join(folder, 'killed.mjs')
  writeFileSync(killed, 'process.kill(process.pid, "SIGKILL")')
  process.argv = [execPath, killed]
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as unknown as typeof process.exit)
  const forward = vi.spyOn(signals, 'forward')
  const holding = hold(lease, 'memory:', options('kill'), new Output(), signals)
  await until('it says so', () => written.includes('it is not known whether the command runs'))
  await locks.advance(lease.ttl / 2)
  forward.mock.lastCall?.[0]?.('SIGTERM')
  expect(exit.mock.calls).toEqual([[143]])
  lease.assertHeld()
  await locks.advance(lease.ttl)
  expect(await holding).toEqual({ exit: 76, hasRun: true, isUnrunnable: false })
})

test.skipIf(process.platform === 'darwin')(
  'a command of another user that outlives its supervisor keeps the lease',
  async () => {
    const locks = testLocks()
    const lease = await locks.acquire('job')
    const killed = join(folder, 'reports.mjs')
    const other = spawn('sleep', ['60'], { detached: true })
    onTestFinished(() => void other.kill())
    writeFileSync(killed, `process.send({ pid: ${other.pid} }, () => process.kill(process.pid, "SIGKILL"))`)
    process.argv = [execPath, killed]
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    const holding = hold(lease, 'memory:', options('kill'), new Output(), signals)
    await until('it says so', () => written.includes('it is not known whether the command runs'))
    expect(written).toContain('belongs to another user and cannot be ended')
    lease.assertHeld()
    await locks.advance(lease.ttl)
    expect(await holding).toEqual({ exit: 76, hasRun: true, isUnrunnable: false })
  },
)

test('a supervisor that cannot be started says nothing about the command', async () => {
  const lease = await testLocks().acquire('job')
  process.execPath = join(folder, 'no-such-node')
  const held = await hold(lease, 'memory:', options('kill'), new Output(), signals)
  expect(held).toEqual({ exit: 126, hasRun: false, isUnrunnable: false })
  expect(() => lease.assertHeld(), 'it was released').toThrow('released')
})
