import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, expect, test } from 'vitest'
import { holdFile } from './busy-file.ts'
import {
  alive,
  BEATING,
  descendants,
  family,
  folder,
  holdfast,
  kill,
  members,
  NODE,
  type Running,
  start,
  until,
} from './holdfast.ts'

/** The times at which the job of this name ran, by the clock that all processes share. */
function beats(name: string): number[] {
  let text = ''
  try {
    text = readFileSync(log(), 'utf8')
  } catch {
    // No job has run yet.
  }
  return text
    .split('\n')
    .filter(line => line.startsWith(`${name} `))
    .map(line => Number(line.slice(name.length + 1)))
}

function log(): string {
  return join(folder, 'beats')
}

/** Starts a job with heartbeats under a lease of 1 s. Resolves after the first one. */
async function beating(name: string, options: readonly string[] = [], job: readonly string[] = []): Promise<Running> {
  const running = start(['run', 'job', '--ttl', '1s', ...options, '--', ...NODE, BEATING, log(), name, ...job])
  await until(() => beats(name).length > 0, `the first beat of ${name}`)
  return running
}

/** Starts a second job that waits for the name, calls `fault`, and returns when the jobs ran. */
async function takeover(
  first: Running,
  fault: () => void,
): Promise<{ died: number; began: number; afterwards: number }> {
  const second = start(['run', 'job', '--ttl', '1s', '--wait', 'forever', '--', ...NODE, BEATING, log(), 'second'])
  await second.reports('waiting')
  fault()
  await until(() => beats('second').length > 0, 'the second to take over')
  const count = beats('first').length
  const died = beats('first').at(-1) as number
  await until(() => beats('second').length > 20, 'the second to go on')
  second.kill('SIGKILL')
  first.kill('SIGKILL')
  return { died, began: beats('second')[0] as number, afterwards: beats('first').length - count }
}

/** Pauses a process outside of a transaction, which would lock the file for all others. */
async function freeze(running: Running): Promise<void> {
  for (;;) {
    running.kill('SIGSTOP')
    try {
      holdFile(join(folder, 'leases.db'), 50)()
      return
    } catch {
      running.kill('SIGCONT')
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

describe('the command is dead before another process acquires the name', () => {
  test('when holdfast is killed', async () => {
    const first = await beating('first')
    const { command, supervisor } = family(first)
    const { died, began, afterwards } = await takeover(first, () => first.kill('SIGKILL'))
    expect(died).toBeLessThan(began)
    expect(afterwards, 'it did not run again').toBe(0)
    expect(members(command)).toEqual([])
    expect(alive(supervisor)).toBe(false)
  })

  test('when holdfast is killed and the command ignores SIGTERM', async () => {
    const first = await beating('first', [], ['ignore-term'])
    const { died, began, afterwards } = await takeover(first, () => first.kill('SIGKILL'))
    expect(died).toBeLessThan(began)
    expect(afterwards).toBe(0)
  })

  test('when holdfast is paused for longer than its ttl; it ends with 76 when it is resumed', async () => {
    const first = await beating('first', [], ['ignore-term'])
    const second = start(['run', 'job', '--ttl', '1s', '--wait', 'forever', '--', ...NODE, BEATING, log(), 'second'])
    await second.reports('waiting')
    await freeze(first)
    await until(() => beats('second').length > 0, 'the second to take over')
    expect(beats('first').at(-1)).toBeLessThan(beats('second')[0] as number)
    first.kill('SIGCONT')
    expect(await first.ended).toMatchObject({
      code: 76,
      err: expect.stringMatching(
        /^holdfast: the lease "job" was not renewed in time \(the event loop was blocked for .* or the process was paused\): the command is ended\n$/,
      ),
    })
    expect(alive(second.pid), 'the late release did not affect the next holder').toBe(true)
    const { out } = await holdfast(['inspect', 'job', '--json'])
    expect(JSON.parse(out).holders).toHaveLength(1)
  })

  test('when the lease is broken', async () => {
    const first = await beating('first', ['--ttl', '3s'], ['ignore-term'])
    const broken = await holdfast(['break', 'job'])
    expect(broken).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Token \d+ is higher than that of its old holder/),
    })
    expect(await first.ended).toMatchObject({
      code: 76,
      err: expect.stringContaining('the lease "job" is no longer held'),
    })
    expect(descendants(first.pid)).toEqual([])
  })

  test('when the store is unresponsive', async () => {
    const first = await beating('first', ['--ttl', '6s'], ['ignore-term'])
    const { command } = family(first)
    const release = holdFile(join(folder, 'leases.db'))
    const pauses = monitorEventLoopDelay()
    pauses.enable()
    const cut = now()
    try {
      await until(() => members(command).length === 0, 'the end of the command')
    } finally {
      release()
    }
    // Where the whole machine stands still for a while, only a fence helps.
    const maxPause = pauses.max / 1e6
    expect((beats('first').at(-1) as number) - cut, 'it ended within the ttl').toBeLessThan(6_000 + maxPause)
    expect(await first.ended).toMatchObject({
      code: 76,
      err: expect.stringMatching(/was not renewed and ends in .*: the command is ended/),
    })
  })

  test('when its supervisor is killed', async () => {
    const first = await beating('first')
    const { supervisor, command } = family(first)
    kill(supervisor, 'SIGKILL')
    const { code, err } = await first.ended
    expect({ code, left: members(command) }).toEqual({ code: 76, left: [] })
    expect(err).toContain('the process that watches the command was killed or did not react, so the command was ended')
    expect(await holdfast(['ls', '--json']), 'and the lease was released').toMatchObject({ out: '[]\n' })
  })

  test('with its children and their children', async () => {
    // The inner shell ends at once. Then its child is an orphan, but still in the process group.
    const job = [
      'sh',
      '-c',
      `sh -c '"$@" &' sh "$@" grandchild ignore-term; exec "$@" first`,
      'sh',
      ...NODE,
      BEATING,
      log(),
    ]
    const first = start(['run', 'job', '--ttl', '1s', '--', ...job])
    await until(() => beats('first').length > 0 && beats('grandchild').length > 0, 'both to live')
    const { died, began } = await takeover(first, () => first.kill('SIGKILL'))
    expect(died).toBeLessThan(began)
    expect(beats('grandchild').at(-1)).toBeLessThan(began)
  })
})

describe('the command is ended at once, long before its lease ends', () => {
  test.each([
    ['', (pid: number) => pid],
    [' with its process group', (pid: number) => -pid],
  ])('by SIGTERM when holdfast is killed%s', async (_, target) => {
    const script = 'trap "echo asked; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
    const running = start(['run', 'job', '--ttl', '1h', '--', 'sh', '-c', script])
    await running.prints('ready')
    kill(target(running.pid), 'SIGKILL')
    await running.prints('asked')
    expect((await running.ended).signal).toBe('SIGKILL')
  })

  test('by SIGKILL after the grace when it ignores SIGTERM', async () => {
    const running = await beating('job', ['--ttl', '1h', '--grace', '200ms'], ['ignore-term'])
    const { command, supervisor } = family(running)
    running.kill('SIGKILL')
    await until(() => !alive(command) && !alive(supervisor), 'the end of command and supervisor')
    expect(members(command)).toEqual([])
  })

  test('when all processes were paused past the deadline', async () => {
    const first = await beating('first', [], ['ignore-term'])
    const { supervisor, command } = family(first)
    await freeze(first)
    for (const pid of [supervisor, command]) kill(pid, 'SIGSTOP')
    const second = await beating('second', ['--wait', 'forever'])
    for (const pid of [command, supervisor, first.pid]) kill(pid, 'SIGCONT')
    expect((await first.ended).code).toBe(76)
    expect(members(command)).toEqual([])
    second.kill('SIGKILL')
  })
})

test('holdfast ends the command of a lost lease while the supervisor is paused', async () => {
  const running = await beating('job', ['--ttl', '3s'], ['ignore-term'])
  const { supervisor, command } = family(running)
  kill(supervisor, 'SIGSTOP')
  await holdfast(['break', 'job'])
  expect(await running.ended).toMatchObject({ code: 76, err: expect.stringContaining('did not react') })
  expect(members(command)).toEqual([])
  expect(alive(supervisor)).toBe(false)
})

test('S7: a supervisor that was paused reads the renewals first, and the command goes on', async () => {
  const first = await beating('first', ['--ttl', '3s'])
  const { supervisor, command } = family(first)
  kill(supervisor, 'SIGSTOP')
  const stopped = now()
  await until(() => now() > stopped + 4_000, 'the end of the deadline that it knows')
  kill(supervisor, 'SIGCONT')
  const count = beats('first').length
  await until(() => beats('first').length > count + 250, 'half a second more').catch(() => {}) // the assertions below report it
  expect(members(command)).toEqual([command])
  first.kill('SIGTERM')
  expect(await first.ended).toMatchObject({ code: 143, err: '' })
})

describe('a process that leaves the session of the command', () => {
  const job =
    'setsid sh -c "exec >/dev/null 2>&1; echo \\$\\$ >escaped; exec sleep 60" & until [ -s escaped ]; do :; done'

  test.each([
    ['like a daemon is not ended: the lease is released when the command ends', '', 0],
    ['outlives the lease', '; echo ready; wait', 76],
  ])('%s', async (_, then, code) => {
    const running = start(['run', 'job', '--ttl', '1s', '--', 'sh', '-c', job + then])
    if (then) {
      await running.prints('ready')
      await holdfast(['break', 'job'])
    }
    expect((await running.ended).code).toBe(code)
    const escaped = Number(readFileSync(join(folder, 'escaped'), 'utf8'))
    expect(alive(escaped)).toBe(true)
    expect(await holdfast(['run', 'job', '--', 'true'])).toMatchObject({ code: 0 })
    kill(escaped, 'SIGKILL')
  })
})

test('a command that takes longer than the ttl runs to its end, because the lease is renewed', async () => {
  const running = start(['run', 'job', '--ttl', '1500ms', '--', 'sh', '-c', 'echo ready; sleep 3; echo done'])
  await running.prints('ready')
  expect(await running.ended).toMatchObject({ code: 0, err: '' })
})

describe('--on-lost', () => {
  test('term sends SIGTERM and leaves the rest to the command', async () => {
    const script = 'trap "echo asked; sleep 0.2; echo done; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
    const running = start(['run', 'job', '--ttl', '3s', '--on-lost', 'term', '--', 'sh', '-c', script])
    await running.prints('ready')
    await holdfast(['break', 'job'])
    expect(await running.ended).toMatchObject({ code: 76, out: 'ready\nasked\ndone\n' })
  })

  test('ignore warns that the lease is lost and ends with the exit code of the command', async () => {
    const running = start(
      ['run', 'job', '--ttl', '3s', '--on-lost', 'ignore', '--', 'sh', '-c', 'echo ready; read line; exit 3'],
      { pipe: true },
    )
    await running.prints('ready')
    await holdfast(['break', 'job'])
    await running.reports(/the lease "job" is no longer held.*: the command goes on/)
    running.child.stdin?.end('\n')
    expect((await running.ended).code).toBe(3)
    expect(running.err.trim().split('\n')).toHaveLength(1)
  })

  test('ignore lets the command go on when holdfast is killed', async () => {
    const first = await beating('first', ['--on-lost', 'ignore'])
    const { command } = family(first)
    first.kill('SIGKILL')
    expect(await holdfast(['run', 'job', '--wait', '10s', '--', 'true'])).toMatchObject({ code: 0 })
    expect(alive(command)).toBe(true)
    kill(command, 'SIGKILL')
  })
})

test('76 if the lease was lost just before the command succeeded', async () => {
  const running = start(['run', 'job', '--ttl', '30s', '--', 'sh', '-c', 'echo ready; read line; exit 0'], {
    pipe: true,
  })
  await running.prints('ready')
  await holdfast(['break', 'job'])
  running.child.stdin?.end('\n')
  const { code, err } = await running.ended
  expect(code).toBe(76)
  expect(err).toMatch(
    /was gone when it was released: another command may have run at the same time; this one ended with 0/,
  )
})

describe('--max', () => {
  test('ends the command by SIGTERM, and holdfast with 76', async () => {
    const script = 'trap "echo asked; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
    const { code, out, err } = await holdfast(['run', 'job', '--max', '6s', '--', 'sh', '-c', script])
    expect({ code, out }).toEqual({ code: 76, out: 'ready\nasked\n' })
    expect(err).toContain('holdfast: job was held for 6 s (--max): the command is ended\n')
  })

  test('ends a command by SIGKILL that ignored the SIGTERM of --on-lost term', async () => {
    const script = 'trap "echo asked" TERM; echo ready; while :; do sleep 0.02; done'
    const limits = ['--ttl', '3s', '--max', '12s', '--on-lost', 'term']
    const running = start(['run', 'job', ...limits, '--', 'sh', '-c', script])
    await running.prints('ready')
    await holdfast(['break', 'job'])
    await running.prints('asked')
    expect(await running.ended).toMatchObject({
      code: 76,
      err: expect.stringMatching(/the lease "job" is no longer held.*: the command is ended\n/),
    })
  })

  test('ends a command that ignores SIGTERM by SIGKILL after the grace, while the lease is still held', async () => {
    const limits = ['--ttl', '1s', '--max', '6s']
    const first = start(['run', 'job', ...limits, '--', ...NODE, BEATING, log(), 'first', 'ignore-term'])
    await until(() => beats('first').length > 0, 'the first beat')
    const second = start(['run', 'job', '--ttl', '1s', '--wait', 'forever', '--', ...NODE, BEATING, log(), 'second'])
    expect((await first.ended).code).toBe(76)
    await until(() => beats('second').length > 0, 'the second to run')
    expect(beats('first').at(-1)).toBeLessThan(beats('second')[0] as number)
    second.kill('SIGKILL')
  })
})

function now(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
