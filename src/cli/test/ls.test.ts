import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { folder, HOLDFAST, hold, holdfast, holding, launch, start } from './holdfast.ts'

async function waiting(name: string, ...options: string[]): Promise<void> {
  const running = start(['run', name, '--wait', 'forever', ...options, '--', 'true'])
  await running.reports('waiting')
}

describe('holdfast ls --watch', () => {
  test('prints what is held, then a line for each change, until a signal', async () => {
    const nightly = await holding('nightly', '--owner', 'alice', '--note', 'invoices')
    const watching = start(['ls', 'night', '--watch'])
    await watching.prints(/^\S+Z {2}held {5}nightly {2}alice {2}\d+ {2}invoices\n$/)
    await waiting('nightly', '--owner', 'bob')
    await watching.prints(/Z {2}waiting {2}nightly {2}1\n/)
    nightly.kill('SIGTERM')
    await watching.prints(/Z {2}(held {5}nightly {2}bob|free {5}nightly)/)
    watching.kill('SIGINT')
    expect(await watching.ended).toMatchObject({ code: 0, err: '' })
  })

  test('prints a JSON object for each line, and fails if the store cannot be read', async () => {
    await hold('nightly', { owner: 'alice' })
    const watching = start(['ls', '--watch', '--json'])
    await watching.prints('\n')
    expect(JSON.parse(watching.out)).toMatchObject({ event: 'held', name: 'nightly', owner: 'alice', waiters: 0 })
    const failed = await holdfast(['ls', '--watch'], { env: { HOLDFAST_STORE: 'redis://127.0.0.1:1' } })
    expect(failed).toMatchObject({ code: 69, out: '' })
    const refused = await holdfast(['ls', 'x'.repeat(300), '--watch'])
    expect(refused).toMatchObject({ code: 64, out: '' })
  })
})

test('ls --watch does not take a name for free that is beyond the 5,000 that it reads', async () => {
  await holdfast(['run', 'warm', '--', 'true']) // creates the table
  insert('z', 'alice')
  const watching = start(['ls', '--watch'])
  await watching.prints(/held {5}z {2}alice/)
  insert(
    Array.from({ length: 5_000 }, (_, index) => `job-${index}`),
    'bob',
  )
  await watching.reports('only some names are read')
  await watching.prints(/held {5}job-4999/)
  watching.kill('SIGINT')
  expect((await watching.ended).out).not.toContain('free')
})

describe('what a slow reader gets', () => {
  const many = (): void =>
    insert(
      Array.from({ length: 500 }, (_, index) => `job-${index}`),
      'x'.repeat(200),
    )

  test('is all of the output', async () => {
    await holdfast(['run', 'warm', '--', 'true']) // creates the table
    many()
    const { out } = await holdfast(['ls', '--json'])
    const command = HOLDFAST.map(word => `'${word}'`).join(' ')
    // Longer than a finished process waits for its client library.
    const slow = await launch(['sh', '-c', `${command} ls --json | (sleep 1.5; wc -c)`]).ended
    expect(Number(slow.out)).toBeGreaterThan(65_536)
    expect(Number(slow.out)).toBe(out.length)
  })

  test('who is gone, or never reads, does not keep the process alive', async () => {
    await holdfast(['run', 'warm', '--', 'true'])
    many()
    for (const args of [
      ['ls', '--json'],
      ['ls', '--watch'],
    ]) {
      const running = start(args)
      const { stdout } = running.child
      stdout?.removeAllListeners('data').pause()
      await new Promise(resolve => stdout?.once('readable', resolve))
      if (args.includes('--watch')) running.kill('SIGTERM')
      else stdout?.destroy()
      const ended = new Promise(resolve => running.child.once('exit', resolve)) // its output is never read
      expect(await ended).toBe(0)
      stdout?.destroy()
    }
  })
})

describe('holdfast ls', () => {
  test('reports that no name is held', async () => {
    expect(await holdfast(['ls'])).toMatchObject({ code: 0, out: 'no name is held\n', err: '' })
    expect(await holdfast(['ls', 'night'])).toMatchObject({ out: 'no name that begins with night is held\n' })
    expect(await holdfast(['ls', '--json'])).toMatchObject({ code: 0, out: '[]\n' })
  })

  test('prints a table of holders, each followed by its waiters in queue order', async () => {
    await hold('nightly', { owner: 'alice', note: 'invoices' })
    await hold('deploy', { owner: 'bob', ttl: 300_000 })
    await waiting('nightly', '--owner', 'carol', '--note', 'me too')
    await waiting('nightly', '--owner', 'dave')
    const { code, out, err } = await holdfast(['ls'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [titles, ...lines] = out.trimEnd().split('\n')
    expect(titles).toMatch(/^NAME {7}STATE {6}OWNER {13}TOKEN {2}REMAINING {2}NOTE$/)
    expect(lines[0]).toMatch(/^deploy {5}held {7}bob {4}\d{16} {6}5 min$/)
    expect(lines[1]).toMatch(/^nightly {4}held {7}alice {2}\d{16} +[\d.]+ s {2}invoices$/)
    expect(lines[2], 'what its position has left is not its wait').toMatch(/^ {2}nightly {2}next {7}carol +me too$/)
    expect(lines[3]).toMatch(/^ {2}nightly {2}waiting 2 {2}dave$/)
    expect(lines).toHaveLength(4)
  })

  test('shows a shared name once, with its holders below', async () => {
    await hold('backup', { limit: 2, owner: 'alice' })
    await hold('backup', { limit: 2, owner: 'bob' })
    await hold('backup/other', { owner: 'carol' })
    const { out } = await holdfast(['ls'])
    const [, ...lines] = out.trimEnd().split('\n')
    expect(lines.map(line => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['backup', '2 of 2'],
      ['', 'slot 0', 'held'],
      ['', 'slot 1', 'held'],
      ['backup/other', 'held', 'carol'],
    ])
  })

  test('lists the names that begin with a prefix', async () => {
    await hold('night-a')
    await hold('night_b')
    await hold('day')
    const { out } = await holdfast(['ls', 'night', '--json'])
    expect(JSON.parse(out).map(({ name }: { name: string }) => name)).toEqual(['night-a', 'night_b'])
    const percent = await holdfast(['ls', '%', '--json'])
    expect(JSON.parse(percent.out), 'and takes the prefix literally').toEqual([])
  })

  test('prints JSON with tokens as decimal strings and times in milliseconds', async () => {
    await hold('nightly', { owner: 'alice', note: 'invoices' })
    const { out } = await holdfast(['ls', '--json'])
    expect(JSON.parse(out)).toEqual([
      {
        name: 'nightly',
        state: 'held',
        owner: 'alice',
        token: expect.stringMatching(/^\d+$/),
        note: 'invoices',
        remaining: expect.any(Number),
      },
    ])
  })
})

describe('holdfast inspect', () => {
  test('shows holder, token, note and waiters', async () => {
    await hold('nightly', { owner: 'alice', note: 'invoices' })
    await waiting('nightly', '--owner', 'bob')
    const { code, out } = await holdfast(['inspect', 'nightly'])
    expect(code).toBe(0)
    expect(out).toMatch(
      /^nightly\n {2}held by {4}alice\n {2}token {6}\d+\n {2}remaining {2}[\d.]+ s, unless renewed\n {2}note {7}invoices\n {2}waiting 1 {2}bob\n$/,
    )
    const json = JSON.parse((await holdfast(['inspect', 'nightly', '--json'])).out)
    expect(json).toMatchObject({
      name: 'nightly',
      holders: [{ owner: 'alice', state: 'held' }],
      waiters: [{ owner: 'bob', position: 0 }],
    })
    expect(json.holders[0].token).toMatch(/^\d+$/)
  })

  test('ends with 1 when the name is free', async () => {
    await hold('nightly')
    expect(await holdfast(['inspect', 'night'])).toMatchObject({ code: 1, out: 'night is free\n', err: '' })
    expect(JSON.parse((await holdfast(['inspect', 'night', '--json'])).out)).toMatchObject({
      name: 'night',
      waiters: [],
    })
  })
})

describe('holdfast break', () => {
  test('prints a token above that of the old holder and below that of the next', async () => {
    const holder = await holding('nightly', '--ttl', '2s')
    const before = JSON.parse((await holdfast(['inspect', 'nightly', '--json'])).out).holders[0].token
    const { code, out } = await holdfast(['break', 'nightly', '--json'])
    expect(code).toBe(0)
    const { name, broken, token } = JSON.parse(out)
    expect({ name, broken }).toEqual({ name: 'nightly', broken: true })
    expect(BigInt(token)).toBeGreaterThan(BigInt(before))
    expect((await holder.ended).code).toBe(76)
    const next = await holdfast(['run', 'nightly', '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN'])
    expect(BigInt(next.out)).toBeGreaterThan(BigInt(token))
  })

  test('--token: takes the lease only from the holder that was seen, else says who holds it and ends with 75', async () => {
    const first = await holding('nightly', '--owner', 'alice')
    const seen: string = JSON.parse((await holdfast(['inspect', 'nightly', '--json'])).out).holders[0].token
    first.kill('SIGTERM')
    await first.ended
    expect(await holdfast(['break', 'nightly', '--token', seen])).toMatchObject({
      code: 1,
      out: 'nightly was free\n',
    })
    await hold('nightly', { owner: 'bob' })
    const { token } = JSON.parse((await holdfast(['inspect', 'nightly', '--json'])).out).holders[0]
    const text = `nightly was not broken: token ${seen} no longer holds it. bob holds it now, with token ${token}\n`
    expect(await holdfast(['break', 'nightly', '--token', seen])).toMatchObject({ code: 75, out: text })
    const json = await holdfast(['break', 'nightly', '--token', seen, '--json'])
    expect(JSON.parse(json.out)).toMatchObject({ broken: false, holders: [{ owner: 'bob', token }] })
    const refused = await holdfast(['break', 'nightly', '--all'])
    expect(refused).toMatchObject({ code: 64, err: expect.stringContaining('is not shared: leave out --all') })
    expect(await holdfast(['break', 'nightly', '--token', token])).toMatchObject({ code: 0 })
    expect(await holdfast(['inspect', 'nightly'])).toMatchObject({ code: 1 })
  })

  test('--quiet prints nothing, and --json the result all the same', async () => {
    await hold('quiet')
    expect(await holdfast(['break', 'quiet', '-q'])).toMatchObject({ code: 0, out: '' })
    expect(await holdfast(['break', 'quiet', '-q'])).toMatchObject({ code: 1, out: '' })
    const { out } = await holdfast(['break', 'quiet', '-q', '--json'])
    expect(JSON.parse(out)).toMatchObject({ broken: false })
  })

  test('ends with 1 when the name was free', async () => {
    expect(await holdfast(['break', 'nightly'])).toMatchObject({ code: 1, out: 'nightly was free\n' })
    expect(await holdfast(['break', 'nightly', '--json'])).toMatchObject({ code: 1 })
  })
})

test('a name of the longest length can be inspected and broken', async () => {
  const name = 'a'.repeat(255)
  await hold(name)
  expect(await holdfast(['inspect', name])).toMatchObject({ code: 0 })
  expect(await holdfast(['break', name])).toMatchObject({ code: 0 })
})

test('output that cannot be written is an error', async () => {
  const { code, err } = await launch(['sh', '-c', '"$@" ls > /dev/full', 'sh', ...HOLDFAST]).ended
  expect({ code, err }).toEqual({ code: 74, err: expect.stringContaining('the output could not be written') })
})

test('migrate --print-sql prints nothing but SQL', async () => {
  const answer = await holdfast(['migrate', '--print-sql', '--store', 'redis://localhost'])
  const nothing = 'holdfast: nothing to do: a store of redis creates what it needs itself\n'
  expect(answer).toMatchObject({ code: 0, out: '', err: nothing })
})

test('holdfast run --json reports progress as JSON lines on standard error', async () => {
  await hold('job', { owner: 'alice' })
  const { code, err } = await holdfast(['run', 'job', '--json', '--wait', '1s', '--', 'true'])
  expect(code).toBe(124)
  const [waited, failed] = err
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(waited).toMatchObject({
    event: 'waiting',
    name: 'job',
    holder: { owner: 'alice', token: expect.stringMatching(/^\d+$/) },
  })
  expect(failed).toMatchObject({ error: { code: 'BUSY', exit: 124, holder: { owner: 'alice' } } })
})

test('F12: holdfast run --json reports the grant and the release', async () => {
  const args = [
    'run',
    'job',
    '--json',
    '--owner',
    'alice',
    '--skip-if-ran-since',
    '1h',
    '--',
    'sh',
    '-c',
    'echo $HOLDFAST_TOKEN',
  ]
  const { code, out, err } = await holdfast(args)
  const token = out.trim()
  expect(code).toBe(0)
  const lines = err.trim().split('\n')
  expect(lines.map(line => JSON.parse(line))).toEqual([
    {
      event: 'acquired',
      message: `job is held with token ${token}`,
      name: 'job',
      token,
      owner: 'alice',
      waited: expect.any(Number),
    },
    { event: 'released', message: 'job is released', name: 'job', token },
  ])
})

test('M7: text that another program wrote into the store is escaped in the terminal', async () => {
  await holdfast(['run', 'warm', '--', 'true']) // creates the table
  const evil = '\u001b]0;title\u0007\u001b[2J\u009b8m\u202egnp\u2066\u2028\nnothing is held'
  insert('evil', evil)
  const shown = '\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{9b}8m\\u{202e}gnp\\u{2066}\\u{2028}\\u{a}nothing is held'
  for (const [args, lines] of [
    [['ls'], 2],
    [['inspect', 'evil'], 5],
    [['run', 'evil', '--', 'true'], 1],
    [['run', 'evil', '--wait', '1s', '--', 'true'], 2],
  ] as const) {
    const { out, err } = await holdfast(args)
    expect(out + err).toContain(shown)
    expect(out + err).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect((out + err).trimEnd().split('\n')).toHaveLength(lines)
  }
  const { out } = await holdfast(['ls', '--json'])
  expect(out).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(JSON.parse(out)).toMatchObject([{ name: 'evil', owner: shown, note: shown }])
})

test('ls --watch escapes such text too, and prints no password of a note', async () => {
  await holdfast(['run', 'warm', '--', 'true']) // creates the table
  insert('evil', 'redis://u:S3cr3tPw@h \u009b8m\u202egnp')
  for (const options of [[], ['--json']]) {
    const watching = start(['ls', 'evil', '--watch', ...options])
    await watching.prints('\n')
    watching.kill('SIGINT')
    const { out } = await watching.ended
    expect(out).toContain('redis://u:***@h')
    expect(out).not.toMatch(/S3cr3tPw|(?!\n)[\p{Cc}\p{Cf}]/u)
    if (options.length > 0) expect(JSON.parse(out)).toMatchObject({ note: 'redis://u:***@h \\u{9b}8m\\u{202e}gnp' })
  }
})

/** Another program writes leases with this owner and note. */
function insert(names: string | readonly string[], text: string): void {
  const database = new DatabaseSync(join(folder, 'leases.db'))
  const statement = database.prepare('insert into holder values (?, ?, ?, ?, 1000000, 1, 1, 0, ?)')
  database.exec('begin')
  for (const name of [names].flat()) statement.run(name, 'a'.repeat(32), text, text, Date.now() + 1_000_000)
  database.exec('commit')
  database.close()
}
