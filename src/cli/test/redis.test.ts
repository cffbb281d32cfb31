import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { alive, descendants, family, holdfast, start, until } from './holdfast.ts'

let redis: RedisServer
let env: { HOLDFAST_STORE: string }

beforeEach(async () => {
  redis = await startRedis({ password: 's3cr@t/word' })
  env = { HOLDFAST_STORE: redis.url }
})

afterEach(async () => {
  await redis.stop()
})

describe('over Redis', () => {
  test('a waiter runs as soon as the name is free, and its command gets the complete URL', async () => {
    const first = start(['run', 'job', '--', 'sh', '-c', 'echo ready; exec sleep 60'], { env })
    await first.prints('ready')
    const second = start(['run', 'job', '--wait', 'forever', '--', 'sh', '-c', 'echo $HOLDFAST_STORE'], { env })
    await second.reports('waiting')
    first.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0, out: `${redis.url}\n` })
  })

  test('when the server stops answering, the command is ended in time and the exit code is 76', async () => {
    const running = start(['run', 'job', '--ttl', '6s', '--', 'sh', '-c', 'trap "" TERM; echo ready; sleep 60'], {
      env,
    })
    await running.prints('ready')
    const { command } = family(running)
    await redis.pause()
    const pauses = monitorEventLoopDelay()
    pauses.enable()
    const stopped = performance.now() // not before: a renewal may pass while it is being paused
    await until(() => !alive(command), 'the end of the command')
    // A machine that hangs does so for this process as well.
    expect(performance.now() - stopped).toBeLessThan(6_000 + pauses.max / 1e6)
    const { code, err } = await running.ended
    expect(code).toBe(76)
    // Once the lease has ended, there is nothing to release.
    expect(err).toMatch(
      /^holdfast: the lease "job" was not renewed and ends in .*: the command is ended\n(holdfast: the store did not confirm the release of job: .*\n)?$/,
    )
  })

  test('F1: after a release that the store does not confirm, the exit code is that of the command, with a warning', async () => {
    const script = 'echo ready; read line; exit 5'
    const running = start(['run', 'job', '--ttl', '30s', '--', 'sh', '-c', script], { env, pipe: true })
    await running.prints('ready')
    await redis.pause()
    running.child.stdin?.end('\n')
    expect(await running.ended).toMatchObject({
      code: 5,
      err: 'holdfast: the store did not confirm the release of job: it is free after its ttl at the latest\n',
    })
    redis.resume()
  })

  test('a short outage does not affect the command', async () => {
    const running = start(['run', 'job', '--ttl', '9s', '--', 'sh', '-c', 'echo ready; sleep 8; exit 5'], { env })
    await running.prints('ready')
    await redis.pause()
    await new Promise(resolve => setTimeout(resolve, 3_500)) // long enough for one renewal to fail
    redis.resume()
    expect(await running.ended).toMatchObject({ code: 5, err: '' })
  })

  test('when the server restarts without its data, the lease is lost and the command is ended', async () => {
    const running = start(['run', 'job', '--ttl', '3s', '--', 'sh', '-c', 'echo ready; exec sleep 60'], { env })
    await running.prints('ready')
    await redis.restart()
    expect((await running.ended).code).toBe(76)
    expect(await holdfast(['run', 'job', '--', 'true'], { env })).toMatchObject({ code: 0 })
  })

  test('when no server answers, the exit code is 69 and the password is not printed', async () => {
    await redis.kill()
    const { code, err } = await holdfast(['run', 'job', '--ttl', '500ms', '--', 'true'], { env })
    expect(code).toBe(69)
    expect(err).toMatch(
      /^holdfast: the store does not answer, and is asked again for up to 5 s: .*ECONNREFUSED.*\nholdfast: .*ECONNREFUSED.*\n$/,
    )
    expect(err).not.toMatch(/s3cr|word/)
  })

  test('a candidate asks a store that is down until it is back, and says so', async () => {
    await redis.kill()
    const candidate = start(['elect', 'job', '--', 'sh', '-c', 'echo leads; exec sleep 60'], { env })
    await candidate.reports('the store does not answer, and is asked again until it answers')
    await redis.start()
    await candidate.prints('leads')
    candidate.kill('SIGTERM')
    await candidate.ended
  })

  test('a signal ends a command that waits for its store', async () => {
    await redis.kill()
    const candidate = start(['elect', 'job', '--', 'true'], { env })
    await candidate.reports('the store does not answer')
    candidate.kill('SIGTERM')
    expect(await candidate.ended).toMatchObject({ code: 143, err: expect.stringContaining('stopped by SIGTERM') })
  })

  test('L15: the process list never shows the password of HOLDFAST_STORE, and one in --store causes a warning', async () => {
    const running = start(['run', 'job', '--', 'sh', '-c', 'echo ready; exec sleep 60'], { env })
    await running.prints('ready')
    const lines = [running.pid, ...descendants(running.pid)].map(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    expect(lines).toHaveLength(3)
    expect(lines.join()).not.toMatch(/s3cr|word/)
    expect(running.err).toBe('')
    running.kill('SIGTERM')
    await running.ended
    expect(await holdfast(['ls', '--store', redis.url])).toMatchObject({
      code: 0,
      err: 'holdfast: every user of this machine can read the password in --store (ps): use HOLDFAST_STORE instead\n',
    })
    expect(await holdfast(['run', 'job', '-q', '--store', redis.url, '--', 'true'])).toMatchObject({ code: 0, err: '' })
  })

  test('a wrong password causes one line that does not print it', async () => {
    const wrong = env.HOLDFAST_STORE.replace('s3cr', 'guess')
    for (const args of [['ls'], ['run', 'a', '--', 'true'], ['elect', 'a', '--', 'true']]) {
      const { code, err } = await holdfast(args, { env: { HOLDFAST_STORE: wrong } })
      expect(code).toBe(77)
      expect(err).toMatch(/^holdfast: Redis refused the user or password.*\n$/)
      expect(err).not.toContain('guess')
    }
  })
})
