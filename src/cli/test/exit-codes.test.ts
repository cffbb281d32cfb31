import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { folder, HOLDFAST, holdfast, holding, launch, start, store } from './holdfast.ts'

describe('holdfast run ends with', () => {
  test('the exit code of the command', async () => {
    for (const code of [0, 1, 3, 64, 75, 255]) {
      expect(await holdfast(['run', 'job', '--', 'sh', '-c', `exit ${code}`])).toMatchObject({ code, err: '' })
    }
  })

  test('128 + n when signal n ended the command', async () => {
    expect(await holdfast(['run', 'job', '--', 'sh', '-c', 'kill -KILL $$'])).toMatchObject({ code: 137 })
    expect(await holdfast(['run', 'job', '--', 'sh', '-c', 'kill -TERM $$'])).toMatchObject({ code: 143 })
  })

  test('75 at once and one line when the name is busy', async () => {
    await holding('job', '--owner', 'alice', '--note', 'nightly run')
    const { code, out, err } = await holdfast(['run', 'job', '--', 'echo', 'ran'])
    expect({ code, out }).toEqual({ code: 75, out: '' })
    expect(err).toMatch(
      /^holdfast: job is held by alice, for another [\d.]+ s unless renewed \(token \d+, "nightly run"\)\n$/,
    )
  })

  test('the code of -E instead of 75, and with -q without a message', async () => {
    await holding('job')
    expect(await holdfast(['run', 'job', '-E', '0', '-q', '--', 'echo'])).toEqual({
      code: 0,
      signal: null,
      out: '',
      err: '',
    })
    expect(await holdfast(['run', 'job', '-qE', '9', '--', 'echo'])).toMatchObject({ code: 9, err: '' })
    expect(await holdfast(['run', 'job', '--conflict-exit-code=7', '--', 'echo'])).toMatchObject({ code: 7 })
  })

  test('124 when the name was busy for all of --wait', async () => {
    await holding('job', '--owner', 'alice')
    const { code, out, err } = await holdfast(['run', 'job', '--wait', '1s', '--', 'echo', 'ran'])
    expect({ code, out }).toEqual({ code: 124, out: '' })
    const [waiting, vain] = err.split('\n')
    expect(waiting).toMatch(
      /^holdfast: job is held by alice, for another [\d.]+ s unless renewed \(token \d+\), waiting$/,
    )
    expect(vain).toMatch(/^holdfast: job was not acquired within 1 s: it is held by alice, for another/)
  })

  test('126 when the command is not executable', async () => {
    const plain = join(folder, 'plain')
    writeFileSync(plain, 'echo hello\n')
    const orphaned = join(folder, 'orphaned')
    writeFileSync(orphaned, '#!/no/such/interpreter\n')
    chmodSync(orphaned, 0o755)
    for (const [command, message] of [
      [plain, `${plain} is not executable (see chmod +x)`],
      [folder, `${folder} is not executable`],
      [orphaned, `the first line of ${orphaned} names an interpreter that does not exist`],
    ] as const) {
      const { code, err } = await holdfast(['run', 'job', '--', command])
      expect(code).toBe(126)
      expect(err).toContain(`holdfast: ${message}`)
    }
  })

  test('127 when the command does not exist', async () => {
    for (const command of ['no-such-command', './no/such/file', join(folder, 'none')]) {
      expect(await holdfast(['run', 'job', '--', command])).toEqual({
        code: 127,
        signal: null,
        out: '',
        err: `holdfast: ${command}: command not found\n`,
      })
    }
    expect(await holdfast(['run', 'job', '--', 'true']), 'the lease was released').toMatchObject({ code: 0 })
  })

  test('127 when the path leads through a file, and 126 when it is too long', async () => {
    const through = '/etc/passwd/x'
    expect(await holdfast(['run', 'job', '--at-least', '20m', '--', through])).toEqual({
      code: 127,
      signal: null,
      out: '',
      err: `holdfast: ${through}: command not found\n`,
    })
    const long = `./${'x'.repeat(300)}`
    expect(await holdfast(['run', 'job', '--', long]), 'the lease was released').toEqual({
      code: 126,
      signal: null,
      out: '',
      err: `holdfast: ${long} cannot be executed: spawn ENAMETOOLONG\n`,
    })
  })

  test('F12: 127 with a hint if a shell command line was given as one word', async () => {
    expect(await holdfast(['run', 'job', '--', "echo 'a' | cat"])).toMatchObject({
      code: 127,
      err:
        "holdfast: echo 'a' | cat: command not found; COMMAND is one program and its arguments; for a shell command line use: " +
        "sh -c 'echo '\\''a'\\'' | cat'\n",
    })
  })

  test('69 when the store is not available', async () => {
    const broken = join(folder, 'broken.db')
    const database = new DatabaseSync(broken)
    database.exec('create table a (b)')
    database.close()
    writeFileSync(broken, readFileSync(broken).fill(7, 100))
    const { code, err } = await holdfast(['run', 'job', '--store', `sqlite:${broken}`, '--', 'true'])
    expect(code).toBe(69)
    expect(err).toMatch(/^holdfast: .*is a damaged SQLite database.*\n$/)
  })

  test('64 when the scheme of the store URL is unknown', async () => {
    const { code, err } = await holdfast(['run', 'job', '--store', 'gopher://u:secret@h/', '--', 'true'])
    expect(code).toBe(64)
    expect(err).toContain('no store has the scheme gopher:')
    expect(err).not.toContain('secret')
  })
})

describe('the command', () => {
  test('gets name, token, owner and store in its environment', async () => {
    const script = 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $HOLDFAST_OWNER $HOLDFAST_STORE $OTHER"'
    const { out } = await holdfast(['run', 'job', '--owner', 'alice', '--', 'sh', '-c', script], {
      env: { OTHER: 'kept' },
    })
    expect(out).toMatch(/^job \d+ alice sqlite:\S+leases\.db kept\n$/)
    expect(out).toContain(store())
  })

  test('gets a higher token each time', async () => {
    const tokens: bigint[] = []
    for (let i = 0; i < 3; i++) {
      const { out } = await holdfast(['run', 'job', '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN'])
      tokens.push(BigInt(out.trim()))
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
    expect(new Set(tokens).size).toBe(3)
  })

  test('reads the standard input of holdfast, to the last byte', async () => {
    const input = 'one line\nand a line without its end'
    expect(await holdfast(['run', 'job', '--', 'cat'], { input })).toMatchObject({ code: 0, out: input, err: '' })
  })

  test('works in a pipeline', async () => {
    const script = `seq 1 100000 | "$@" run a -- cat | "$@" run b -- sh -c 'tail -n 1' | tr 0 x`
    const pipeline = launch(['sh', '-c', script, 'sh', ...HOLDFAST])
    expect(await pipeline.ended).toMatchObject({ code: 0, out: '1xxxxx\n', err: '' })
  })

  test('ends when its reader ends, and so does holdfast', async () => {
    const pipeline = launch(['sh', '-c', `"$@" run a -- yes | head -n 1`, 'sh', ...HOLDFAST])
    expect(await pipeline.ended).toMatchObject({ code: 0, out: 'y\n' })
  })

  test('writes to standard output and standard error in its own order, before holdfast ends', async () => {
    const script = 'for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; kill -TERM $$'
    const both = launch([
      'sh',
      '-c',
      '"$@" 2>&1; echo code $?',
      'sh',
      ...HOLDFAST,
      'run',
      'a',
      '--',
      'sh',
      '-c',
      script,
    ])
    const { out } = await both.ended
    expect(out.trim().split('\n')).toEqual([1, 2, 3, 4, 5].flatMap(i => [`out ${i}`, `err ${i}`]).concat('code 143'))
  })

  test('gets its arguments unchanged', async () => {
    const args = ['a b', '', '--', '--help', '-q', '$HOME', "it's", 'ü']
    const { out } = await holdfast(['run', 'job', '--', 'printf', '[%s]', ...args])
    expect(out).toBe(args.map(arg => `[${arg}]`).join(''))
  })

  test('finds the same store file from another folder', async () => {
    mkdirSync(join(folder, 'inner'))
    const nested = 'cd inner && "$@" inspect job'
    const { code, out } = await holdfast([
      'run',
      'job',
      '--store',
      'sqlite:near.db',
      '--',
      'sh',
      '-c',
      nested,
      'sh',
      ...HOLDFAST,
    ])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('held by') })
  })

  test('runs in the working directory of holdfast', async () => {
    mkdirSync(join(folder, 'inner'))
    const { out } = await holdfast(['run', 'job', '--', 'sh', '-c', 'cd inner && pwd'])
    expect(out).toContain('inner')
  })
})

test('a waiter reports each new holder once, and runs when it acquires the name', async () => {
  const first = await holding('job', '--owner', 'alice')
  const second = start([
    'run',
    'job',
    '--wait',
    'forever',
    '--owner',
    'bob',
    '--',
    'sh',
    '-c',
    'echo ready; exec sleep 60',
  ])
  await second.reports(/held by alice, .* waiting/)
  const third = start(['run', 'job', '--wait', '1h', '--', 'echo', 'third'])
  await third.reports(/held by alice, .* waiting; 1 ahead/)
  first.kill('SIGTERM')
  await second.prints('ready')
  await third.reports(/held by bob, .* waiting/)
  second.kill('SIGTERM')
  expect(await third.ended).toMatchObject({ code: 0, out: 'third\n' })
  expect(third.err.match(/held by alice/g)).toHaveLength(1)
  expect(third.err.match(/held by bob/g)).toHaveLength(1)
})
