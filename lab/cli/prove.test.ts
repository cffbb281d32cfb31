import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { alive, descendants, folder, holdfast, start } from '../../src/cli/test/holdfast.ts'
import { startPostgres } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'
import { until } from '../servers/until.ts'

const QUICK = ['--ttl', '500ms', '--duration', '3s', '--seed', '3', '--clients', '3', '--names', '2']

/** The kinds of the events in a history. */
function kindsIn(path: string): string[] {
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  return lines.map(line => (JSON.parse(line) as { kind: string }).kind)
}

test('external servers are left as they were, and a warning comes first', async () => {
  const server = await startRedis({ password: 'secret' })
  onTestFinished(() => server.stop())
  await server.call('SET', 'theirs', 'kept')
  const events = join(folder, 'events.jsonl')
  const { code, err, out } = await holdfast(['prove', '--store', server.url, ...QUICK, '--events', events])
  expect({ code, out }).toMatchObject({ code: expect.toBeOneOf([0, 2]) }) // it is short
  expect(err).toMatch(/3 processes compete for 2 names/)
  expect(err + out).not.toContain('secret')
  expect(kindsIn(events)).toEqual(expect.arrayContaining(['granted', 'fault', 'accepted']))
  // Claims that were withdrawn are remembered for 5 s.
  const keys = async (): Promise<string> => String(((await server.call('KEYS', '*')) as string[]).sort())
  // The counter of tokens is that of all leases with this prefix.
  await until('only theirs is left', async () => (await keys()) === 'holdfast:token,theirs')
})

test('a history can be judged again, also compressed, and gets the same verdict', async () => {
  const [events, compressed] = ['jsonl', 'jsonl.gz'].map(end => join(folder, `events.${end}`)) as [string, string]
  const run = await holdfast(['prove', '--lab', 'sqlite', ...QUICK, '--faults', 'none', '--json', '--events', events])
  writeFileSync(compressed, gzipSync(readFileSync(events)))
  for (const file of [events, compressed]) {
    const again = await holdfast(['prove', '--judge', file, '--json', '--report', join(folder, 'page.html')])
    expect(again).toMatchObject({ code: run.code })
    expect(JSON.parse(again.out)).toEqual(JSON.parse(run.out))
  }
  expect(readFileSync(join(folder, 'page.html'), 'utf8')).toContain('holdfast prove --judge events.jsonl.gz')
  // Two holders of the first name with one token.
  const twice = readFileSync(events, 'utf8').replace(/"token":"\d+"/g, '"token":"1"')
  writeFileSync(events, twice)
  expect(await holdfast(['prove', '--judge', events])).toMatchObject({
    code: 1,
    out: expect.stringContaining('violated'),
  })
})

test('a history that cannot be judged is refused, and so are options of a run', async () => {
  writeFileSync(join(folder, 'empty.jsonl'), '')
  writeFileSync(join(folder, 'other.jsonl'), '{}\n')
  const judged = (...args: string[]): Promise<{ code: number | null; err: string }> =>
    holdfast(['prove', '--judge', ...args])
  for (const [args, code, message] of [
    [['none.jsonl'], 64, 'there is no such file'],
    [['empty.jsonl', '--seed', '1'], 64, '--judge runs nothing: remove --seed'],
    [['other.jsonl'], 64, 'is not an event of a history'],
    [['empty.jsonl'], 64, 'a history begins with'],
  ] as const) {
    expect(await judged(...args)).toMatchObject({ code, err: expect.stringContaining(message) })
  }
})

test('no row is left in a table of PostgreSQL', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const { code, out } = await holdfast(['prove', '--store', `${server.url()}?create=true`, ...QUICK])
  expect({ code, out }).toMatchObject({ code: expect.toBeOneOf([0, 2]) })
  expect(await server.query('select name from holdfast.lease')).toEqual([])
})

test('a server that does not answer is reported, and nothing is started', async () => {
  const { code, err } = await holdfast(['prove', '--store', 'redis://127.0.0.1:1', ...QUICK])
  expect({ code, err }).toMatchObject({ code: 69, err: expect.stringMatching(/127\.0\.0\.1:1|ECONNREFUSED/) })
})

test('a ttl that is too short for the store is refused before anything is started', async () => {
  // No server listens there, so no request was sent.
  const { code, err } = await holdfast(['prove', '--store', 'etcd://127.0.0.1:1', ...QUICK])
  expect({ code, err }).toMatchObject({
    code: 64,
    err: expect.stringMatching(/--ttl is 500 ms; etcd needs at least 1000/),
  })
  expect(err).not.toMatch(/ at .*\.ts/)
})

test('a run on external servers is short and small', async () => {
  const url = ['prove', '--store', 'redis://127.0.0.1:1']
  expect((await holdfast([...url, '--duration', '1h'])).err).toMatch(/--duration 1h: expected from .* to 10m/)
  expect((await holdfast([...url, '--clients', '9'])).err).toMatch(/--clients 9: .* from 2 to 8/)
  expect((await holdfast([...url, '--faults', 'server-kill'])).err).toMatch(/no fault server-kill of external servers/)
})

test('Ctrl-C ends it with everything that it started, and leaves no folder behind', async () => {
  const events = join(folder, 'events.jsonl')
  const proving = start(['prove', '--lab', 'redis', '--ttl', '500ms', '--faults', 'client-pause', '--events', events], {
    env: { TMPDIR: folder },
  })
  await until('clients hold names', () => readFileSync(events, 'utf8').includes('"granted"'), { limit: 20_000 })
  const started = descendants(proving.pid)
  proving.kill('SIGINT')
  expect((await proving.ended).code).toBe(130)
  // Its watchdog ends last, once it has removed the folder.
  await until('all that it started has ended', () => !started.some(alive))
  await until('its folder is gone', () => readdirSync(folder).every(name => !name.startsWith('holdfast-servers')))
})

test('a known violation is shown on demand, and the fence holds', {
  timeout: 60_000,
}, async () => {
  const args = ['--lab', 'redis', '--ttl', '500ms', '--duration', '8s', '--seed', '3', '--known-violation', '--json']
  const { code, out, err } = await holdfast(['prove', ...args])
  expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('"shown":true') })
  const { rows } = JSON.parse(out) as { rows: { promise: string; outcome: string }[] }
  const outcomes = Object.fromEntries(rows.map(({ promise, outcome }) => [promise, outcome]))
  expect(outcomes).toMatchObject({ safety: 'passed', tokens: 'passed', notified: 'violated' })
})
