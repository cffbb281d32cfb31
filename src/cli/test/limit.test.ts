import { expect, test } from 'vitest'
import { holdfast, start } from './holdfast.ts'

const PRINT = ['--', 'sh', '-c', 'echo "$HOLDFAST_NAME $HOLDFAST_SLOT $HOLDFAST_TOKEN $HOLDFAST_TOKENS"']
const WAIT = ['--', 'sh', '-c', 'echo ready; exec sleep 60']

test('run --limit runs as many commands at a time, and tells each its slot', async () => {
  const first = start(['run', 'backup', '--limit', '2', ...WAIT])
  await first.prints('ready')
  const { code, out } = await holdfast(['run', 'backup', '--limit', '2', ...PRINT])
  expect(code).toBe(0)
  const [, token, json = ''] = /^backup 1 (\d+\/2:1) (.*)\n$/.exec(out) ?? [] // of limit 2, in slot 1
  expect(JSON.parse(json)).toEqual({ backup: token })
  const { err } = await holdfast(['run', 'backup', '--limit', '2', '--json', ...PRINT])
  expect(JSON.parse(err.split('\n')[0] ?? '')).toMatchObject({ event: 'acquired', name: 'backup', slot: 1 })
  const second = start(['run', 'backup', '--limit', '2', ...WAIT])
  await second.prints('ready')
  expect(await holdfast(['run', 'backup', '--limit', '2', ...PRINT])).toMatchObject({
    code: 75,
    out: '',
    err: expect.stringMatching(
      /^holdfast: backup is not free: one holder is .*, for another [\d.]+ s unless renewed \(slot \d, token \d+\); holdfast inspect backup shows all\n$/,
    ),
  })
  expect(await holdfast(['run', 'backup', '--limit=2', '--wait=300ms', '-q', ...PRINT])).toMatchObject({ code: 124 })
  const waiting = holdfast(['run', 'backup', '--limit', '2', '--wait', '30s', '-q', ...PRINT])
  second.kill('SIGTERM')
  expect(await waiting).toMatchObject({ code: 0, out: expect.stringMatching(/^backup 1 /) })
  first.kill('SIGTERM')
  await Promise.all([first.ended, second.ended])
  expect((await holdfast(['ls', '--json'])).out).toBe('[]\n')
})

test('a run that waits for a slot names no waiter as the holder', async () => {
  const holder = start(['run', 'x', '--limit', '1', '--owner', 'alice', ...WAIT])
  await holder.prints('ready')
  const first = start(['run', 'x', '--limit', '1', '--wait', '60s', '--owner', 'first', ...PRINT])
  await first.reports(/waiting/)
  const second = start(['run', 'x', '--limit', '1', '--wait', '60s', ...PRINT])
  await second.reports(/waiting/)
  for (const each of [holder, first, second]) each.kill('SIGTERM')
  await Promise.all([holder.ended, first.ended])
  const { err } = await second.ended
  expect(err).toMatch(
    /^holdfast: x is not free: one holder is alice, for another .*, waiting; 1 ahead; holdfast inspect x shows all$/m,
  )
  expect(err).not.toContain('first')
})

test('the command is ended when its slot is lost', async () => {
  const one = start(['run', 'x', '--limit', '2', '--ttl', '3s', ...WAIT])
  await one.prints('ready')
  const two = start(['run', 'x', '--limit', '2', '--ttl', '3s', ...WAIT])
  await two.prints('ready')
  expect(await holdfast(['break', 'x', '--slot', '1'])).toMatchObject({ code: 0 })
  expect(await two.ended).toMatchObject({ code: 76, err: expect.stringContaining('the permit of "x"') })
  one.kill('SIGTERM')
  await one.ended
})

test('run --reader and --writer exclude each other', async () => {
  const reader = start(['run', 'pages', '--reader', ...WAIT])
  await reader.prints('ready')
  expect(await holdfast(['run', 'pages', '--reader', '--', 'true'])).toMatchObject({ code: 0 })
  expect(await holdfast(['run', 'pages', '--writer', '--', 'true'])).toMatchObject({ code: 75 })
  reader.kill('SIGTERM')
  await reader.ended
  const read = await holdfast(['run', 'pages', '--reader', ...PRINT])
  expect(read.out).toMatch(/^pages 0 (\d+\/2147483647:0) \{"pages":"\1"\}\n$/)
  const written = await holdfast(['run', 'pages', '--writer', ...PRINT])
  expect(written.out).toMatch(/^pages {2}(\d+) \{"pages":"\1"\}\n$/)
})

test('ls and inspect say which waiters read and which write', async () => {
  const reading = start(['run', 'pages', '--reader', ...WAIT])
  await reading.prints('ready')
  const writing = start(['run', 'pages', '--writer', '--owner', 'w', '--wait', '60s', ...PRINT])
  await writing.reports(/waiting/)
  const late = start(['run', 'pages', '--reader', '--owner', 'r', '--wait', '60s', ...PRINT])
  await late.reports(/waiting/)
  const { out } = await holdfast(['ls'])
  expect(out).toMatch(/next, writer +w\n.*waiting 2, reader +r\n/)
  expect((await holdfast(['inspect', 'pages'])).out).toMatch(/waiting 1 +w, writer\n +waiting 2 +r, reader\n$/)
  reading.kill('SIGTERM')
  expect(await writing.ended).toMatchObject({ code: 0 })
  expect(await late.ended).toMatchObject({ code: 0 })
})

test('ls and inspect show a shared name once with its holders, and break takes one or all', async () => {
  const one = start(['run', 'x', '--limit', '2', '--owner', 'alice', ...WAIT])
  await one.prints('ready')
  const two = start(['run', 'x', '--limit', '2', '--owner', 'bob', ...WAIT])
  await two.prints('ready')
  const waiting = start(['run', 'x', '--limit', '2', '--owner', 'carol', '--wait', '60s', ...WAIT])
  await waiting.reports(/waiting/)
  const { code, out } = await holdfast(['inspect', 'x'])
  expect(code).toBe(0)
  const lease = String.raw`[\d.]+ s unless renewed, token \d+\n`
  expect(out).toMatch(
    RegExp(`^x, held: 2 of 2\\n  slot 0     alice, ${lease}  slot 1     bob, ${lease}  waiting 1  carol\\n$`),
  )
  const { holders } = JSON.parse((await holdfast(['inspect', 'x', '--json'])).out) as { holders: { token: string }[] }
  expect(holders).toMatchObject([
    { owner: 'alice', limit: 2 },
    { owner: 'bob', limit: 2, slots: [1] },
  ])
  const listed = await holdfast(['ls'])
  const rows = listed.out.split('\n').map(line => line.trim().split(/ {2,}/).slice(0, 3))
  expect(rows.slice(1, -1)).toEqual([
    ['x', '2 of 2'],
    ['slot 0', 'held', 'alice'],
    ['slot 1', 'held', 'bob'],
    ['x', 'next', 'carol'],
  ])
  const refused = await holdfast(['break', 'x'])
  expect(refused).toMatchObject({ code: 64, err: expect.stringContaining('held in slots 0-1: add --slot N or --all') })
  expect(await holdfast(['break', 'x', '--slot', '3'])).toMatchObject({ code: 1, out: 'slot 3 of x was free\n' })
  expect(await holdfast(['break', 'x', '--slot', 'a'])).toMatchObject({ code: 64 })
  expect(await holdfast(['break', 'free', '--all'])).toMatchObject({ code: 1, out: 'free was free\n' })
  expect(await holdfast(['break', 'x', '--all', '--slot', '1'])).toMatchObject({ code: 64 })
  const older = ['break', 'x', '--token', holders[0]?.token ?? '', '--slot', '1']
  expect(await holdfast(older)).toMatchObject({ code: 75, out: expect.stringContaining('bob holds it now') })
  const broken = await holdfast(['break', 'x', '--slot', '1'])
  expect(broken).toMatchObject({ code: 0, out: expect.stringMatching(/^slot 1 of x is free\. Token \d+ /) })
  await waiting.prints('ready')
  const all = JSON.parse((await holdfast(['break', 'x', '--all', '--json'])).out)
  expect(all).toMatchObject({ name: 'x', broken: true, token: expect.stringMatching(/^\d+$/) })
  expect(await holdfast(['inspect', 'x'])).toMatchObject({ code: 1, out: 'x is free\n' })
})

test.each([
  [['--limit', '2147483648'], /--limit 2147483648 is not possible: expected a number from 1 to 2147483647/],
  [['--limit', '0'], /--limit 0/],
  [['--limit', 'many'], /--limit many/],
  [['--reader', '--writer'], /--reader and --writer exclude each other/],
  [['--also', 'b', '--limit', '2'], /--also and --limit exclude each other/],
])('refuses %j', async (options, message) => {
  expect(await holdfast(['run', 'a', ...options, '--', 'echo', 'ran'])).toMatchObject({
    code: 64,
    out: '',
    err: expect.stringMatching(message),
  })
})
