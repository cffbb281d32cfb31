import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  alive,
  descendants,
  family,
  folder,
  HOLDFAST,
  holdfast,
  holding,
  kill,
  launch,
  members,
  start,
  until,
} from './holdfast.ts'

const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const

describe('while the command runs', () => {
  test.each(FORWARDED)('%s reaches the command and its children', async signal => {
    const short = signal.slice(3)
    // The inner shell runs in the foreground, because background processes of a shell ignore SIGINT and SIGQUIT.
    const child = `trap "echo child ${short}; exit 0" ${short}; echo ready; while :; do sleep 0.02; done`
    const script = `trap "echo got ${short}; exit 7" ${short}; sh -c '${child}'; sleep 20`
    const running = start(['run', 'job', '--', 'sh', '-c', script])
    await running.prints('ready')
    running.kill(signal)
    const { code, out } = await running.ended
    expect(code).toBe(7)
    expect(out).toContain(`got ${short}`)
    expect(out).toContain(`child ${short}`)
  })

  test.each(FORWARDED)('%s ends the command, and the exit code is 128 + n', async signal => {
    const running = await holding('job')
    running.kill(signal)
    expect((await running.ended).code).toBe(128 + constants.signals[signal])
    expect(await holdfast(['run', 'job', '--', 'true']), 'the lease was released').toMatchObject({ code: 0 })
  })

  test('a command that ignores SIGTERM goes on, and a second signal is forwarded too', async () => {
    const script = 'trap "echo first" TERM; trap "echo second; exit 4" INT; echo ready; while :; do sleep 0.02; done'
    const running = start(['run', 'job', '--', 'sh', '-c', script])
    await running.prints('ready')
    running.kill('SIGTERM')
    await running.prints('first')
    running.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 4, out: 'ready\nfirst\nsecond\n' })
  })

  test('a signal to all processes, as from a service manager, lets the command end by itself', async () => {
    const running = start([
      'run',
      'job',
      '--',
      'sh',
      '-c',
      'trap "sleep 0.3; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.02; done',
    ])
    await running.prints('ready')
    for (const pid of [running.pid, ...descendants(running.pid)]) kill(pid, 'SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0, out: 'ready\nsaved\n' })
  })

  test('Ctrl-C in a terminal reaches the command once, through holdfast', async () => {
    const count = `trap 'n=$((n + 1))' INT; echo ready; while [ $n = 40 ]; do sleep 0.05; done; sleep 0.3; exit $n`
    writeFileSync(join(folder, 'job.sh'), `n=40; ${count}`)
    const command = ['exec', ...HOLDFAST, 'run', 'job', '--', 'sh', 'job.sh'].join(' ')
    const terminal = launch(['script', '-qec', command, '/dev/null'], { pipe: true })
    await terminal.prints('ready')
    terminal.child.stdin?.write('\u0003')
    expect((await terminal.ended).code).toBe(41)
  })

  test('SIGTSTP does not suspend holdfast, because its lease would end', async () => {
    const running = await holding('job')
    running.kill('SIGTSTP')
    await running.reports('job cannot be suspended')
    running.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
  })
})

describe('while it waits', () => {
  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('%s ends the wait with %d and leaves no claim behind', async (signal, code) => {
    const holder = await holding('job')
    const waiting = start(['run', 'job', '--wait', 'forever', '--', 'echo', 'ran'])
    await waiting.reports('waiting')
    waiting.kill(signal)
    const { err, ...rest } = await waiting.ended
    expect(rest).toEqual({ code, signal: null, out: '' })
    expect(err).toContain(`stopped by ${signal} before the command ran`)
    const { out } = await holdfast(['ls', '--json'])
    expect(JSON.parse(out).map(({ state }: { state: string }) => state)).toEqual(['held'])
    holder.kill('SIGTERM')
    await holder.ended
  })

  test('SIGUSR1 and SIGUSR2 do nothing', async () => {
    const holder = await holding('job')
    const waiting = start(['run', 'job', '--wait', 'forever', '--', 'echo', 'ran'])
    await waiting.reports('waiting')
    waiting.kill('SIGUSR1')
    waiting.kill('SIGUSR2')
    holder.kill('SIGTERM')
    expect(await waiting.ended).toMatchObject({ code: 0, out: 'ran\n' })
  })
})

describe('after the command', () => {
  test('no process of its group is left, even one that ignores signals', async () => {
    const stubborn = `(trap "" TERM INT HUP; while :; do sleep 0.05; done) >/dev/null 2>&1 &`
    const { code, out } = await holdfast(['run', 'job', '--', 'sh', '-c', `${stubborn} echo $$; exit 5`])
    expect(code).toBe(5)
    expect(members(Number(out))).toEqual([])
  })

  test('no supervisor is left', async () => {
    const running = await holding('job')
    const { supervisor } = family(running)
    running.kill('SIGTERM')
    await running.ended
    await until(() => !alive(supervisor), 'the end of the supervisor')
    expect(alive(supervisor)).toBe(false)
  })
})

test('as process 1 of a container it forwards signals, and ends although orphans stay zombies', async () => {
  const script = [
    `(sh -c "trap '' TERM; sleep 60" &)`, // an orphan, whose exit status process 1 never reads
    'trap "echo got TERM; exit 6" TERM',
    'echo supervised by a child of $(cut -d " " -f 4 /proc/$PPID/stat)',
    'while :; do sleep 0.02; done',
  ].join('; ')
  const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const world = ['unshare', ...asRoot, '--pid', '--fork', '--kill-child', '--mount-proc']
  const container = launch([...world, ...HOLDFAST, 'run', 'job', '--', 'sh', '-c', script])
  await container.prints('supervised by a child of 1\n')
  const [first] = descendants(container.pid)
  kill(first as number, 'SIGTERM')
  expect((await container.ended).code).toBe(6)
  expect(container.out).toContain('got TERM')
})

// Only root can start a process of another user.
test.runIf(process.getuid?.() === 0)(
  'a process of another user that outlives the command keeps the lease',
  async () => {
    const other =
      'setpriv --reuid 65534 sh -c "echo ready; exec sleep 60" & until [ -e go ]; do sleep 0.02; done; exit 5'
    const mayNotKill = ['setpriv', '--bounding-set', '-kill', ...HOLDFAST]
    const running = launch([...mayNotKill, 'run', 'job', '--', 'sh', '-c', other])
    await running.prints('ready')
    const { command } = family(running)
    writeFileSync(join(folder, 'go'), '')
    await running.reports('belongs to another user')
    const { out } = await holdfast(['ls', '--json'])
    expect(JSON.parse(out)).toMatchObject([{ name: 'job', state: 'held' }])
    for (const member of members(command)) kill(member, 'SIGKILL')
    expect(await running.ended).toMatchObject({ code: 5 })
    expect((await holdfast(['ls', '--json'])).out).toBe('[]\n')
  },
)

// Only root can start a process of another user.
test.runIf(process.getuid?.() === 0)('a process of another user that outlives the supervisor is reported', async () => {
  const other = ['setpriv', '--reuid', '65534', 'sh', '-c', 'echo ready; exec sleep 60']
  const mayNotKill = ['setpriv', '--bounding-set', '-kill', ...HOLDFAST]
  const running = launch([...mayNotKill, 'run', 'job', '--', ...other])
  await running.prints('ready')
  const { supervisor, command } = family(running)
  kill(supervisor, 'SIGKILL')
  await until(() => !alive(running.pid), 'the end of holdfast')
  kill(command, 'SIGKILL')
  expect(await running.ended).toMatchObject({ code: 76, err: expect.stringContaining('belongs to another user') })
})
