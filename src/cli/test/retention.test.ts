import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { family, folder, holdfast, holding, kill, start, until } from './holdfast.ts'

async function held(): Promise<{ name: string; remaining: number; owner: string }[]> {
  return JSON.parse((await holdfast(['ls', '--json'])).out)
}

describe('--at-least', () => {
  test('holds the name after a fast command, without the process', async () => {
    expect(await holdfast(['run', 'job', '--at-least', '20m', '--', 'true'])).toMatchObject({ code: 0, err: '' })
    const [lease] = await held()
    expect(lease).toMatchObject({ name: 'job' })
    expect(lease?.remaining).toBeLessThan(20 * 60_000)
    expect(await holdfast(['run', 'job', '--', 'echo', 'ran'])).toMatchObject({ code: 75, out: '' })
  })

  test('releases the name after that time', async () => {
    const began = performance.now()
    expect(await holdfast(['run', 'job', '--at-least', '3s', '--', 'true'])).toMatchObject({ code: 0, err: '' })
    expect(await holdfast(['run', 'job', '--wait', '1m', '--', 'echo', 'ran'])).toMatchObject({ code: 0, out: 'ran\n' })
    expect(performance.now() - began).toBeGreaterThan(3_000)
  })

  test('holds the name after a failure too, and ends with the exit code of the command', async () => {
    expect(await holdfast(['run', 'job', '--at-least', '20s', '--', 'false'])).toMatchObject({ code: 1 })
    expect(await held()).toMatchObject([{ name: 'job' }])
  })

  test('holds the name when the supervisor is killed', async () => {
    const running = await holding('job', '--at-least', '20m')
    kill(family(running).supervisor, 'SIGKILL')
    expect(await running.ended).toMatchObject({ code: 76 })
    expect(await held()).toMatchObject([{ name: 'job' }])
  })

  test('releases the name at once after a command that took longer', async () => {
    expect(await holdfast(['run', 'job', '--at-least', '100ms', '--', 'sleep', '0.2'])).toMatchObject({ code: 0 })
    expect(await held()).toEqual([])
  })

  test('if the store is unresponsive after the command, the exit code is still that of the command', async () => {
    const waits = ['sh', '-c', 'echo ready; while [ ! -e go ]; do sleep 0.05; done']
    const running = start(['run', 'job', '--ttl', '4s', '--at-least', '20m', '--', ...waits])
    await running.prints('ready')
    const file = new DatabaseSync(join(folder, 'leases.db'))
    file.exec('pragma busy_timeout = 10000; begin immediate')
    writeFileSync(join(folder, 'go'), '')
    const { code, err } = await running.ended
    file.close()
    expect(err).toMatch(/^holdfast: job was not held for all of --at-least: the lease "job" was not renewed in time\n$/)
    expect(code).toBe(0)
  })

  test('releases the name at once when the command does not exist', async () => {
    expect(await holdfast(['run', 'job', '--at-least', '20s', '--', 'no-such-command'])).toMatchObject({ code: 127 })
    expect(await held()).toEqual([])
  })
})

describe('--skip-if-ran-since', () => {
  const once = ['run', 'job', '--skip-if-ran-since', '20m', '--owner', 'alice', '--', 'sh', '-c', 'echo ran']

  test('runs once, then skips with exit code 0 and the reason', async () => {
    expect(await holdfast(once)).toMatchObject({ code: 0, out: 'ran\n', err: '' })
    const { code, out, err } = await holdfast(once)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toMatch(/^holdfast: job was run by alice and is not run again for (19 min 5\d s|20 min): skipped\n$/)
    expect(await held(), 'the name itself is free').toMatchObject([{ name: 'job', state: 'ran', owner: 'alice' }])
  })

  test('F12: break of a run marker does not warn of an old holder', async () => {
    await holdfast(once)
    expect(await holdfast(['break', 'job', '--marker'])).toMatchObject({
      code: 0,
      out: 'the marker of job is removed: the next run is not skipped\n',
    })
    expect(await holdfast(['break', 'job', '--marker'])).toMatchObject({
      code: 1,
      out: 'job has no marker of a run\n',
    })
    expect(await holdfast(once)).toMatchObject({ code: 0, out: 'ran\n' })
  })

  test('the marker is shown as a run, and not as a lease of somebody who works', async () => {
    await holdfast(once)
    expect((await holdfast(['ls'])).out).toMatch(/^job +ran +alice +\d+ +20 min$/m)
    expect(await holdfast(['inspect', 'job'])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^job is free\n +ran by +alice, not run again for (19 min 5\d s|20 min)\n$/),
    })
    const { out } = await holdfast(['inspect', 'job\u241fran'])
    expect(out).toMatch(/^job\n +ran by +alice\n/)
    expect(out).not.toContain('renewed')
  })

  test('JSON says that a name ran, under the name itself, and not that it is held', async () => {
    const json = async (...args: string[]) => JSON.parse((await holdfast([...args, '--json'])).out)
    await holdfast(once)
    expect(await json('ls')).toMatchObject([{ name: 'job', state: 'ran', owner: 'alice' }])
    expect(await json('inspect', 'job')).toMatchObject({
      holders: [],
      ran: { name: 'job', state: 'ran', owner: 'alice' },
    })
    const holder = start(['run', 'job', '--owner', 'bob', '--', 'sh', '-c', 'echo ready; sleep 60'])
    await holder.prints('ready')
    expect((await holdfast(['ls'])).out).toMatch(/^NAME .*\njob +held +bob .*\njob +ran +alice .*\n$/)
    const [held] = (await json('ls')).filter(({ state }: { state: string }) => state === 'held')
    expect(held).toMatchObject({ name: 'job', owner: 'bob' })
    expect((await json('inspect', 'job')).ran).toMatchObject({ owner: 'alice' })
    holder.kill('SIGTERM')
    await holder.ended
    await holdfast(['break', 'job', '--marker'])
    expect(await json('inspect', 'job')).not.toHaveProperty('ran')
  })

  test('ls --watch prints that a name ran and that its marker is over, and never that it is held or free', async () => {
    await holdfast(once)
    const watching = start(['ls', '--watch'])
    await watching.prints(/Z {2}ran {6}job {2}alice/)
    await holdfast(['break', 'job', '--marker'])
    await watching.prints(/Z {2}expired {2}job\n/)
    watching.kill('SIGINT')
    expect((await watching.ended).out).not.toMatch(/held|free/)
  })

  test('top does not count a run as a held name', async () => {
    await holdfast(once)
    expect((await holdfast(['top'])).out).toMatch(/^0 held, 0 waiting/m)
  })

  test('counts from the start of the run, and skips without waiting for the name', async () => {
    const slow = ['run', 'job', '--skip-if-ran-since', '20m', '--at-least', '10m', '--', 'sleep', '2']
    await holdfast(slow)
    const [, marker] = await held()
    expect(marker).toMatchObject({ name: 'job', state: 'ran' })
    expect(marker?.remaining).toBeLessThan(20 * 60_000 - 2_000)
    expect(await holdfast(['run', 'job', '--wait', 'forever', ...once.slice(2)])).toMatchObject({ code: 0, out: '' })
  })

  test('a run that lost its lease does not count, even if the command ended with 0', async () => {
    const work = ['sh', '-c', 'echo ready; while [ ! -e go ]; do sleep 0.05; done']
    const running = start(['run', 'job', '--on-lost', 'ignore', '--skip-if-ran-since', '20m', '--', ...work])
    await running.prints('ready')
    await holdfast(['break', 'job'])
    writeFileSync(join(folder, 'go'), '')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(await held()).toEqual([])
  })

  test('runs again after a failure, after the time, and without the option', async () => {
    const fail = ['run', 'job', '--skip-if-ran-since', '500ms', '--', 'sh', '-c', 'echo ran; exit 3']
    expect(await holdfast(fail)).toMatchObject({ code: 3, out: 'ran\n' })
    const brief = ['run', 'job', '--skip-if-ran-since', '500ms', '--', 'echo', 'ran']
    expect(await holdfast(brief)).toMatchObject({ code: 0, out: 'ran\n' })
    expect(await holdfast(['run', 'job', '--', 'echo', 'ran'])).toMatchObject({ code: 0, out: 'ran\n' })
    await until(async () => (await held()).length === 0, 'the end of the run marker')
    expect(await holdfast(brief)).toMatchObject({ code: 0, out: 'ran\n' })
  })

  test('a command that ends with 0 because of a signal is run again', async () => {
    const work = 'trap "exit 0" TERM; echo ready; sleep 20 & wait'
    const stopped = start([...once.slice(0, -1), work])
    await stopped.prints('ready')
    stopped.kill('SIGTERM')
    const err = expect.stringContaining('may run again too soon: it ended with 0 after a signal')
    expect(await stopped.ended).toMatchObject({ code: 0, err })
    expect(await holdfast(once)).toMatchObject({ code: 0, out: 'ran\n' })
  })

  test('skips a run that waited for the one that succeeded', async () => {
    const slow = [
      'run',
      'job',
      '--skip-if-ran-since',
      '20m',
      '--',
      'sh',
      '-c',
      `echo ready; while [ ! -e ${folder}/go ]; do sleep 0.05; done`,
    ]
    const first = start(slow)
    await first.prints('ready')
    const second = start(['run', 'job', '--wait', 'forever', ...once.slice(2)])
    await second.reports('waiting')
    writeFileSync(join(folder, 'go'), '')
    expect(await first.ended).toMatchObject({ code: 0 })
    expect(await second.ended).toMatchObject({ code: 0, out: '', err: expect.stringContaining('skipped') })
  })

  test('five hosts whose clocks differ run a cron job once', async () => {
    const options = ['-q', '-E', '0', '--at-least', '1s', '--skip-if-ran-since', '20m']
    const outs: string[] = []
    for (let host = 0; host < 5; host += 1) {
      const { code, out, err } = await holdfast(['run', 'report', ...options, '--', 'echo', 'ran'])
      expect({ code, err }).toEqual({ code: 0, err: '' })
      outs.push(out)
    }
    expect(outs.join('')).toBe('ran\n')
  })
})
