import { expect, test } from 'vitest'
import { holdfast, start } from './holdfast.ts'

const PRINT = ['--', 'sh', '-c', 'echo "$HOLDFAST_NAME $HOLDFAST_SLOT $HOLDFAST_TOKEN $HOLDFAST_TOKENS"']
const WAIT = ['--', 'sh', '-c', 'echo ready; exec sleep 60']

test('run --limit runs as many commands at a time, and tells each its slot', async () => {
  const first = start(['run', 'backup', '--limit', '2', ...WAIT])
  await first.prints('ready')
  const { code, out } = await holdfast(['run', 'backup', '--limit', '2', ...PRINT])
  expect(code).toBe(0)
  const [, token, json = ''] = /^backup 1 (\d+) (.*)\n$/.exec(out) ?? []
  expect(JSON.parse(json)).toEqual({ 'backup\u241f1': token }) // the resource of slot 1
  const { err } = await holdfast(['run', 'backup', '--limit', '2', '--json', ...PRINT])
  expect(JSON.parse(err.split('\n')[0] ?? '')).toMatchObject({ event: 'acquired', name: 'backup', slot: 1 })
  const second = start(['run', 'backup', '--limit', '2', ...WAIT])
  await second.prints('ready')
  expect(await holdfast(['run', 'backup', '--limit', '2', ...PRINT])).toMatchObject({
    code: 75,
    out: '',
    err: 'holdfast: "backup" was not acquired: its 2 slots are held\n',
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
  const holder = start(['run', 'x', '--limit', '1', ...WAIT])
  await holder.prints('ready')
  const first = start(['run', 'x', '--limit', '1', '--wait', '60s', '--owner', 'first', ...PRINT])
  await first.reports(/waiting/)
  const second = start(['run', 'x', '--limit', '1', '--wait', '60s', ...PRINT])
  await second.reports(/waiting/)
  for (const each of [holder, first, second]) each.kill('SIGTERM')
  await Promise.all([holder.ended, first.ended])
  const { err } = await second.ended
  expect(err).toContain('holdfast: x is shared and not free yet, waiting; to see its holders: holdfast ls x\n')
  expect(err).not.toContain('held by')
})

test('the command is ended when its slot is lost', async () => {
  const one = start(['run', 'x', '--limit', '2', '--ttl', '1s', ...WAIT])
  await one.prints('ready')
  const two = start(['run', 'x', '--limit', '2', '--ttl', '1s', ...WAIT])
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
  const written = await holdfast(['run', 'pages', '--writer', ...PRINT])
  expect(written).toMatchObject({ code: 0, out: expect.stringMatching(/^pages 0 /) })
  const tokens = JSON.parse(written.out.split(' ').at(-1) ?? '') as Record<string, string>
  expect(Object.keys(tokens)).toEqual(['pages', ...Array.from({ length: 16 }, (_, index) => `pages\u241f${index + 1}`)])
})

test('inspect shows the slots of a name, and break takes one or all', async () => {
  const one = start(['run', 'x', '--limit', '2', '--owner', 'alice', ...WAIT])
  await one.prints('ready')
  const two = start(['run', 'x', '--limit', '2', '--owner', 'bob', ...WAIT])
  await two.prints('ready')
  const { code, out } = await holdfast(['inspect', 'x'])
  expect(code).toBe(0)
  expect(out).toMatch(/^x\n {2}slot 0 {5}alice\n(.*\n)* {2}slot 1 {5}bob, [\d.]+ s unless renewed\n$/)
  const { slots } = JSON.parse((await holdfast(['inspect', 'x', '--json'])).out) as { slots: unknown[] }
  expect(slots).toMatchObject([{ name: 'x\u241f1', owner: 'bob', state: 'held' }])
  expect(await holdfast(['break', 'x'])).toMatchObject({ code: 64, err: expect.stringContaining('--slot N or --all') })
  expect(await holdfast(['break', 'x', '--gate'])).toMatchObject({ code: 1, out: 'x (gate) was free\n' })
  expect(await holdfast(['break', 'x', '--slot', '3'])).toMatchObject({ code: 1, out: 'x (slot 3) was free\n' })
  expect(await holdfast(['break', 'x', '--slot', 'a'])).toMatchObject({ code: 64 })
  expect(await holdfast(['break', 'x', '--all', '--gate'])).toMatchObject({ code: 64 })
  const broken = await holdfast(['break', 'x', '--slot', '1'])
  expect(broken).toMatchObject({ code: 0, out: expect.stringMatching(/^x \(slot 1\) is free\. Token \d+ /) })
  const three = start(['run', 'x', '--limit', '2', '--owner', 'carol', ...WAIT])
  await three.prints('ready')
  const all = await holdfast(['break', 'x', '--all', '--json'])
  const { leases } = JSON.parse(all.out) as { leases: { name: string; token: string }[] }
  expect(leases.map(({ name }) => name)).toEqual(['x', 'x\u241f1'])
  expect(JSON.parse(all.out)).toMatchObject({ broken: true, token: leases[1]?.token })
  expect(await holdfast(['inspect', 'x'])).toMatchObject({ code: 1, out: 'x is free\n' })
})

test.each([
  [['--limit', '17'], /--limit 17 is not possible: expected a number from 1 to 16/],
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
