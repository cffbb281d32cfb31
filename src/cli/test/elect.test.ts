import { chmodSync, closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { family, folder, holdfast, kill, members, type Running, start } from './holdfast.ts'

/** Prints when it starts and when it stops. Stopping takes 0.3 s. */
const SERVICE =
  'trap "echo stopping; sleep 0.3; echo stopped; exit 0" TERM; echo "up $HOLDFAST_TOKEN"; while :; do sleep 0.02; done'

function candidate(...options: string[]): Running {
  return start(['elect', 'service', ...options, '--', 'sh', '-c', SERVICE])
}

test('one instance runs; after SIGTERM it ends before the next leads with a higher token', async () => {
  const one = candidate('--note', 'one')
  await one.prints('up')
  const two = candidate('--note', 'two')
  await two.reports('waiting')
  expect(JSON.parse((await holdfast(['inspect', 'service', '--json'])).out)).toMatchObject({
    holders: [{ note: 'one' }],
    waiters: [{ note: 'two' }],
  })
  one.kill('SIGTERM')
  await one.prints('stopping')
  expect(two.out, 'the name is held until the command has ended').toBe('')
  const { code, out } = await one.ended
  expect({ code, end: out.slice(out.indexOf('stopping')) }).toEqual({ code: 0, end: 'stopping\nstopped\n' })
  await two.prints('up')
  const token = (text: string): bigint => BigInt(/up (\d+)/.exec(text)?.[1] ?? 0)
  expect(token(two.out)).toBeGreaterThan(token(one.out))
  two.kill('SIGTERM')
  expect(await two.ended).toMatchObject({ code: 0 })
  expect((await holdfast(['ls', '--json'])).out.trim()).toBe('[]')
})

test('a command that fails is started again after a pause that doubles, by another candidate if one waits', async () => {
  const script = 'echo up; exit 3'
  const alone = start(['elect', 'service', '--pause', '50ms', '--max-pause', '10s', '--', 'sh', '-c', script])
  await alone.prints(/(up\n){5}/)
  await alone.reports(/the command ended with 3; the next campaign for service is in (\d+) ms/)
  const delays = [...alone.err.matchAll(/campaign for service is in (\d+) ms/g)].map(([, delay]) => Number(delay))
  for (const [index, longest] of [50, 100, 200, 400].entries()) {
    expect(delays[index]).toBeLessThanOrEqual(longest)
    expect(delays[index]).toBeGreaterThanOrEqual(longest / 2)
  }
  const other = candidate()
  await other.prints('up')
  alone.kill('SIGINT')
  expect(await alone.ended).toMatchObject({ code: 130 })
})

test('of failures in a row the first is printed, also with --quiet', async () => {
  const running = start(['elect', 'service', '--pause', '20ms', '-q', '--', 'sh', '-c', 'echo up; exit 3'])
  await running.prints(/(up\n){4}/)
  running.kill('SIGTERM')
  expect((await running.ended).err.match(/the command ended with 3; the next campaign for service/g)).toHaveLength(1)
})

test('a command that ends with 0 is started again any number of times, without a warning', async () => {
  const running = start(['elect', 'service', '--pause', '10ms', '-q', '--', 'echo', 'up'])
  await running.prints(/(up\n){15}/)
  running.kill('SIGTERM')
  expect((await running.ended).err).not.toContain('listeners')
})

test('when holdfast is killed, its command is ended and another candidate leads', async () => {
  const one = candidate('--ttl', '2s')
  await one.prints('up')
  const two = candidate('--ttl', '2s')
  await two.reports('waiting')
  const { command } = family(one)
  kill(one.pid, 'SIGKILL')
  await two.prints('up')
  expect(members(command), 'no process of the first is left').toEqual([])
})

test('when the lease is broken, the command is killed and the candidate leads again', async () => {
  const one = candidate('--ttl', '1s', '--pause', '10ms')
  await one.prints('up')
  expect(await holdfast(['break', 'service'])).toMatchObject({ code: 0 })
  await one.prints(/up \d+\nup \d+/)
  one.kill('SIGTERM')
  expect(await one.ended).toMatchObject({ code: 0 })
})

test('SIGUSR1 is forwarded to the command, which goes on', async () => {
  const script = 'trap "echo reloaded" USR1; echo up; while :; do sleep 0.02; done'
  const one = start(['elect', 'service', '--', 'sh', '-c', script])
  await one.prints('up')
  one.kill('SIGUSR1')
  await one.prints('reloaded')
  one.kill('SIGTERM')
  expect(await one.ended).toMatchObject({ code: 143 })
})

test('a candidate that is stopped while it waits, or between two starts, leaves no claim', async () => {
  const one = candidate()
  await one.prints('up')
  const two = candidate()
  await two.reports('waiting')
  two.kill('SIGTERM')
  expect(await two.ended).toMatchObject({ code: 143, out: '' })
  one.kill('SIGTERM')
  await one.ended
  const failing = start(['elect', 'service', '--pause', '1m', '--max-pause', '1m', '--', 'false'])
  await failing.reports('the next campaign for service')
  failing.kill('SIGTERM')
  expect(await failing.ended).toMatchObject({ code: 143 })
  expect((await holdfast(['ls', '--json'])).out.trim()).toBe('[]')
})

test('a command that cannot be executed is not tried again', async () => {
  expect(await holdfast(['elect', 'service', '--', 'no-such-command'])).toMatchObject({ code: 127 })
  const plain = join(folder, 'plain')
  writeFileSync(plain, '')
  expect(await holdfast(['elect', 'service', '--', plain])).toMatchObject({ code: 126 })
  expect(await holdfast(['elect', 'service', '--', `${plain}/x`])).toMatchObject({ code: 127 })
})

test.each([126, 127])('a command that itself ends with %d is started again', async code => {
  const running = start(['elect', 'service', '--pause', '10ms', '--', 'sh', '-c', `echo up; exit ${code}`])
  await running.prints(/(up\n){3}/)
  await running.reports(`the command ended with ${code}; the next campaign`)
  running.kill('SIGTERM')
  await running.ended
})

test('a command that cannot be started for a while, such as one that is being written, is tried again', async () => {
  const script = join(folder, 'script')
  writeFileSync(script, '#!/bin/sh\necho up\n')
  chmodSync(script, 0o755)
  const writing = openSync(script, 'r+')
  const running = start(['elect', 'service', '--pause', '10ms', '--', script])
  await running.reports(/cannot be executed: spawn ETXTBSY\n.* the command was not started; the next campaign/)
  closeSync(writing)
  await running.prints('up')
  running.kill('SIGTERM')
  await running.ended
})
