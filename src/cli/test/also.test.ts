import { expect, test } from 'vitest'
import { holdfast, holding, start } from './holdfast.ts'

const PRINT = ['--', 'sh', '-c', 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $HOLDFAST_TOKENS"']

test('run --also holds all names, and gives the command the token of each', async () => {
  const { code, out } = await holdfast(['run', 'b', '--also', 'a', '--also=c', '--also', 'b', ...PRINT])
  expect(code).toBe(0)
  const [, name, token, json = ''] = /^(\S+) (\d+) (.*)\n$/.exec(out) ?? []
  const tokens = JSON.parse(json) as Record<string, string>
  expect(Object.keys(tokens)).toEqual(['b', 'a', 'c'])
  for (const each of Object.values(tokens)) expect(each).toMatch(/^\d+$/)
  expect([name, token]).toEqual(['b', tokens.b])
  expect((await holdfast(['ls', '--json'])).out).toBe('[]\n')
})

test('without --also, HOLDFAST_TOKENS has the one name', async () => {
  const { out } = await holdfast(['run', 'job', ...PRINT])
  const [, token, json = ''] = /^job (\d+) (.*)\n$/.exec(out) ?? []
  expect(JSON.parse(json)).toEqual({ job: token })
})

test('a busy name of --also is reported, and the others are released', async () => {
  await holding('b', '--owner', 'alice')
  const once = await holdfast(['run', 'a', '--also', 'b', '--', 'echo', 'ran'])
  expect(once).toMatchObject({ code: 75, out: '', err: expect.stringMatching(/^holdfast: b is held by alice/) })
  const waited = await holdfast(['run', 'a', '--also', 'b', '--wait', '1s', '--', 'echo', 'ran'])
  expect(waited).toMatchObject({ code: 124, out: '' })
  expect(waited.err).toMatch(/^holdfast: b was not acquired within 1 s: it is held by alice/m)
  expect(await holdfast(['run', 'a', '--', 'echo', 'ran'])).toMatchObject({ code: 0, out: 'ran\n' })
})

test('two runs whose names are in opposite order do not wait for each other', async () => {
  const runs = ['a b', 'b a', 'a b', 'b a'].map(names => {
    const [name = '', also = ''] = names.split(' ')
    return holdfast(['run', name, '--also', also, '--wait', '30s', '-q', '--', 'sleep', '0.05'])
  })
  expect((await Promise.all(runs)).map(({ code }) => code)).toEqual([0, 0, 0, 0])
})

test('when one of the names is lost, the command is ended', async () => {
  const running = start(['run', 'a', '--also', 'b', '--ttl', '3s', '--', 'sh', '-c', 'echo ready; exec sleep 60'])
  await running.prints('ready')
  await holdfast(['break', 'b'])
  expect(await running.ended).toMatchObject({ code: 76, err: expect.stringContaining('the lease "b"') })
})

test('--at-least keeps all names after the command', async () => {
  expect(await holdfast(['run', 'a', '--also', 'b', '--at-least', '30s', '--', 'true'])).toMatchObject({ code: 0 })
  for (const name of ['a', 'b']) expect(await holdfast(['run', name, '--', 'true'])).toMatchObject({ code: 75 })
})

test.each([
  [['--also', ''], /the name of a lease is empty/],
  [Array.from({ length: 64 }, (_, index) => `--also=n${index}`), /at most 64 names, not 65/],
  [['--also'], /--also/],
])('refuses %j', async (options, message) => {
  expect(await holdfast(['run', 'a', ...options, '--', 'echo', 'ran'])).toMatchObject({
    code: 64,
    out: '',
    err: expect.stringMatching(message),
  })
})
