import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { helpFor } from '../help/help.ts'
import { folder, HOLDFAST, holdfast, holding, launch, store } from './holdfast.ts'

describe('help', () => {
  test('has examples for every command', async () => {
    for (const command of ['run', 'elect', 'ls', 'inspect', 'break', 'ttl', 'fence', 'prove']) {
      const asked = await holdfast([command, '--help'])
      expect(asked).toMatchObject({ code: 0, err: '' })
      expect(asked.out).toMatch(new RegExp(`^Usage: holdfast ${command}`))
      expect(asked.out).toContain(`\nExamples\n  holdfast ${command}`)
      expect((await holdfast(['help', command])).out).toBe(asked.out)
      expect((await holdfast([command, 'x', '-h'])).out).toBe(asked.out)
    }
  })

  test('lists the commands', async () => {
    const { code, out } = await holdfast(['--help'])
    expect(code).toBe(0)
    for (const command of ['run NAME', 'elect NAME', 'ls [PREFIX]', 'inspect NAME', 'break NAME'])
      expect(out).toContain(command)
    expect(Math.max(...out.split('\n').map(line => line.length))).toBeLessThanOrEqual(120)
  })

  test('after -- is an argument of the command', async () => {
    expect(await holdfast(['run', 'job', '--', 'printf', '%s', '--help'])).toMatchObject({ code: 0, out: '--help' })
  })

  test('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
    expect(await holdfast(['--version'])).toMatchObject({ code: 0, out: `${version}\n` })
  })
})

test('holdfast alone printed an error instead of the help', async () => {
  expect(await holdfast([])).toMatchObject({ code: 64, out: helpFor(undefined), err: '' })
  expect(await holdfast(['fence'])).toMatchObject({ code: 64, out: helpFor('fence'), err: '' })
})

test('the help of demo listed options that demo refuses', async () => {
  const flags = helpFor('demo').match(/--\w+/g)
  expect(flags).toEqual(['--help'])
  await isRefused(['demo', '-q'], 'holdfast demo has no option -q')
})

describe('--quiet printed more than errors:', () => {
  test.each([['ls'], ['top'], ['inspect', 'nightly'], ['ttl', '--for', '2s'], ['doctor']])('%s', async (...args) => {
    await holding('nightly')
    const { code, out, err } = await holdfast([...args, '-q'], { env: { HOLDFAST_STORE: store() } })
    expect({ code, out, err }).toEqual({ code: 0, out: '', err: '' })
    expect(JSON.parse((await holdfast([...args, '-q', '--json'])).out), 'which a program asked for').toBeTruthy()
    const failed = await holdfast([...args, '-q', '--store', 'sqlite:/no/such/folder/leases.db'])
    expect(failed.err).toMatch(/^holdfast: .*\n$/)
  })

  test('a warning of the library', async () => {
    const { err } = await holdfast(['ls', '-q', '--store', 'redlock://127.0.0.1:1,127.0.0.1:2'])
    expect(err).toMatch(/^holdfast: .*\n$/)
    expect(err).not.toContain('even')
  })
})

test.each([
  [
    ['--json'],
    'a command is missing: expected run, elect, ls, top, inspect, break, doctor, dashboard, migrate, ttl, fence, demo, prove; see holdfast --help',
  ],
  [['rnu', 'job'], 'there is no command rnu: did you mean run?; see holdfast --help'],
  [['start'], 'there is no command start; see holdfast --help'],
  [
    ['help', 'start'],
    'there is no command start: expected run, elect, ls, top, inspect, break, doctor, dashboard, migrate, ttl, fence, demo, prove',
  ],
  [['run'], 'NAME is missing; see holdfast run --help'],
  [['run', '--', 'true'], 'NAME is missing'],
  [['run', 'job'], 'the command is missing, as in: holdfast run job -- node job.js'],
  [['run', 'job', '--'], 'the command is missing'],
  [['run', 'job', '--', ''], 'the command is missing'],
  [['run', 'job', 'node', 'job.js'], 'put the command after --, as in: holdfast run job -- node job.js'],
  [['run', 'a', 'b', '--', 'true'], 'expected one NAME, but b follows it'],
  [['run', 'job', '--tll', '5s', '--', 'true'], 'has no option --tll: did you mean --ttl?'],
  [['run', 'job', '--wait', '--', 'true'], '--wait needs a duration, such as 5m; see holdfast run --help'],
  [['run', 'job', '-E', '--', 'true'], '--conflict-exit-code needs a value'],
  [['run', 'job', '--ttl', '10', '--', 'true'], 'a duration needs a unit: did you mean 10s or 10ms?'],
  [['run', 'job', '--wait', '-5s', '--', 'true'], '--wait needs a value: write --wait=VALUE if that begins with -'],
  [['break', 'job', '--slot', '-1'], '--slot needs a value: write --slot=VALUE if that begins with -'],
  [['break', 'job', '--slot=-1'], '--slot -1 is not a slot: expected a number from 0'],
  [['run', 'job', '--wait=-5s', '--', 'true'], '--wait -5s is not a duration'],
  [['run', 'job', '--wait', 'ever', '--', 'true'], '--wait ever is not a duration'],
  [['run', 'job', '--ttl', '0s', '--', 'true'], '--ttl 0s is too short'],
  [
    ['run', 'job', '--ttl', '400ms', '--', 'true'],
    '--ttl 400ms is too short to end a command in time: expected at least 500ms',
  ],
  [['run', 'job', '--ttl', '1000h', '--', 'true'], 'too long'],
  [['run', 'job', '--ttl', '3s', '--grace', '1001ms', '--', 'true'], '--grace 1001ms is more than a third of the ttl'],
  [['run', 'job', '--max', '0s', '--', 'true'], '--max 0s leaves no time'],
  [['run', 'job', '--skip-if-ran-since', '0s', '--', 'true'], '--skip-if-ran-since 0 never skips a run'],
  [
    ['run', 'job', '--skip-if-ran-since', '1h', '--store', 'zookeeper://127.0.0.1:1', '--', 'true'],
    '--skip-if-ran-since is 3600000 ms, but zookeeper keeps a lease without its process for at most 24000 ms',
  ],
  [
    ['run', 'job', '--skip-if-ran-since', '1h', '--store', 'redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3', '--', 'x'],
    'redlock of 3 keeps a lease without its process for at most 30000 ms',
  ],
  [
    ['run', 'x'.repeat(250), '--skip-if-ran-since', '1h', '--', 'true'],
    'the name has 250 bytes: with --skip-if-ran-since at most 249 are allowed',
  ],
  [['elect', 'job'], 'the command is missing, as in: holdfast elect job -- node job.js'],
  [['elect', 'job', 'true'], 'put the command after --, as in: holdfast elect job -- true'],
  [['elect', 'job', '--wait', '5s', '--', 'true'], 'holdfast elect has no option --wait'],
  [['elect', 'job', '--pause', '1ms', '--', 'true'], '--pause 1ms would start a broken command in a busy loop'],
  [
    ['elect', 'job', '--max-pause', '1ms', '--', 'true'],
    '--max-pause 1ms is shorter than --pause: expected at least 1000ms',
  ],
  [['run', 'job', '--on-lost', 'pray', '--', 'true'], '--on-lost pray is unknown: expected kill, term or ignore'],
  [['run', 'job', '-E', '256', '--', 'true'], '-E 256 is not an exit code: expected a number from 0 to 255'],
  [['run', 'job', '-E', 'x', '--', 'true'], '-E x is not an exit code'],
  [['run', 'job', '--store', '', '--', 'true'], '--store is empty'],
  [['run', 'job', '--store', 'memory:', '--', 'true'], 'it locks nothing'],
  [['run', 'job', '--store', 'leases.db', '--', 'true'], 'the URL of the store has no scheme'],
  [['run', '', '--', 'true'], 'the name of a lease is empty'],
  [['run', 'a\nb', '--', 'true'], 'has a control character'],
  [['run', 'job', '--note', '\u202etxt.exe', '--', 'true'], 'note has an invisible character'],
  [['run', 'x'.repeat(256), '--', 'true'], 'has 256 bytes of UTF-8: at most 255 are allowed'],
  [['run', 'job', '--note', 'x'.repeat(256), '--', 'true'], 'at most 255'],
  [['ls', 'a', 'b'], 'expected one PREFIX, but b follows it'],
  [['ls', '--ttl', '5s'], 'holdfast ls has no option --ttl'],
  [['inspect'], 'NAME is missing; see holdfast inspect --help'],
  [['break'], 'NAME is missing'],
  [['break', 'job', '--token', 'x'], '--token x is not a token: expected a number, as holdfast inspect shows it'],
  [['break', 'job', '--token', '5', '--all'], '--token is of one lease, so it excludes --all'],
])('%j is refused with 64 and one line', isRefused)

test.each(['run', 'elect', 'ttl'])('each duration of holdfast %s that is missing is called one', async command => {
  const options = [...helpFor(command).matchAll(/(--[\w-]+) DURATION/g)].map(([, option]) => option as string)
  expect(options).not.toEqual([])
  for (const option of new Set(options)) await isRefused([command, option], `${option} needs a duration, such as 5m`)
})

test('L17: a name that would break a line of the metrics is refused', () =>
  isRefused(['run', 'a\u2028b', '--', 'true'], 'has an invisible character ("a\\u{2028}b")'))

test.each([
  [['constructor'], 'there is no command constructor; see holdfast --help'],
  [['__proto__'], 'there is no command __proto__; see holdfast --help'],
  [['help', 'constructor'], 'there is no command constructor: expected run, elect'],
  [['fence', 'constructor'], 'there is no holdfast fence constructor; see holdfast fence --help'],
  [['fence', 'toString'], 'there is no holdfast fence toString; see holdfast fence --help'],
])('L19: %j, a property of every object, is not a command', isRefused)

async function isRefused(args: string[], message: string): Promise<void> {
  const { code, out, err } = await holdfast(args)
  expect({ code, out }).toEqual({ code: 64, out: '' })
  expect(err).toContain(message)
  expect(err).toMatch(/^holdfast: .*\n$/)
}

test('with --json an error is a JSON object in one line on standard error', async () => {
  for (const args of [
    ['run', 'job', '--json', '--ttl', '10', '--', 'true'],
    ['inspect', '--json'],
    ['ls', '--json', '--store', 'x:'],
  ]) {
    const { code, out, err } = await holdfast(args)
    expect({ code, out }).toEqual({ code: 64, out: '' })
    expect(JSON.parse(err)).toEqual({
      error: expect.objectContaining({ code: 'INVALID_ARGUMENT', exit: 64, message: expect.any(String) }),
    })
  }
})

test('with --json, printed SQL is a JSON document too', async () => {
  for (const args of [
    ['migrate', '--print-sql', '--store', 'postgres://localhost'],
    ['fence', 'sql'],
  ]) {
    const plain = await holdfast(args)
    expect(plain).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/create /i) })
    const { code, out } = await holdfast([...args, '--json'])
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, sql: plain.out })
  }
})

test('colours are only for terminals, and NO_COLOR turns them off', async () => {
  expect((await holdfast(['nothing'])).err).not.toContain('\u001b')
  const command = [...HOLDFAST, 'nothing'].map(word => `'${word}'`).join(' ')
  const terminal = await launch(['script', '-qec', command, '/dev/null'], { env: { TERM: 'xterm' } }).ended
  expect(terminal.out).toContain('\u001b[')
  const plain = await launch(['script', '-qec', command, '/dev/null'], { env: { TERM: 'xterm', NO_COLOR: '1' } }).ended
  expect(plain.out).toContain('there is no command nothing')
  expect(plain.out).not.toContain('\u001b[')
})

describe('without a store', () => {
  const nowhere = { HOLDFAST_STORE: undefined, XDG_STATE_HOME: undefined }

  test('a file of this user is used and reported, in a private folder', async () => {
    const env = { ...nowhere, XDG_STATE_HOME: join(folder, 'state') }
    const { code, out, err } = await holdfast(['run', 'job', '--', 'sh', '-c', 'echo $HOLDFAST_STORE'], { env })
    const path = join(folder, 'state', 'holdfast', 'leases.db')
    expect({ code, out }).toEqual({ code: 0, out: `sqlite:${path}\n` })
    expect(err).toBe(
      `holdfast: leases are in sqlite:${path}, for this user and machine only; set HOLDFAST_STORE to share them\n`,
    )
    expect(statSync(join(folder, 'state', 'holdfast')).mode & 0o777).toBe(0o700)
    expect(await holdfast(['ls', '-q'], { env })).toMatchObject({ code: 0, err: '' })
  })

  test('a relative XDG_STATE_HOME is ignored, and folder names may have special characters', async () => {
    const home = join(folder, 'my home?100%#')
    mkdirSync(home)
    const { code } = await holdfast(['run', 'job', '--', 'true'], {
      env: { ...nowhere, HOME: home, XDG_STATE_HOME: 'state' },
    })
    expect(code).toBe(0)
    expect(existsSync(join(home, '.local', 'state', 'holdfast', 'leases.db'))).toBe(true)
  })

  test.each([{ NODE_ENV: 'production' }, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }])(
    '%j is refused with 64',
    async production => {
      const { code, err } = await holdfast(['run', 'job', '--', 'true'], {
        env: { ...nowhere, ...production, HOME: folder },
      })
      expect(code).toBe(64)
      expect(err).toContain('in production')
      expect(err).toContain('set HOLDFAST_STORE')
      const store = `sqlite:${join(folder, 'leases.db')}`
      expect(
        await holdfast(['run', 'job', '--store', store, '--', 'true'], { env: { ...nowhere, ...production } }),
      ).toMatchObject({ code: 0, err: '' })
    },
  )

  test('a folder that cannot be created: 69, and what to do', async () => {
    const { code, err } = await holdfast(['run', 'job', '--', 'true'], { env: { ...nowhere, HOME: '/dev/null' } })
    expect(code).toBe(69)
    expect(err).toMatch(
      /^holdfast: the folder \/dev\/null\/\.local\/state\/holdfast of the default store cannot be created \(\w+\): set HOLDFAST_STORE or XDG_STATE_HOME\n$/,
    )
  })

  test('an empty HOME: 69, and what to do', async () => {
    const { code, err } = await holdfast(['ls'], { env: { ...nowhere, HOME: '' } })
    expect({ code, err }).toEqual({ code: 69, err: expect.stringContaining('HOME is not set') })
  })

  test('an empty HOLDFAST_STORE is refused, because a lock in the wrong store is worse than an error', async () => {
    const { code, err } = await holdfast(['run', 'job', '--', 'true'], { env: { HOLDFAST_STORE: '' } })
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('HOLDFAST_STORE is empty') })
  })
})
