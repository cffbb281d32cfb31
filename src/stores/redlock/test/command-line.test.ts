import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { mask } from '../../../cli/output.ts'
import { folder, holdfast, start } from '../../../cli/test/holdfast.ts'
import { connect } from '../../../index.ts'
import { type Nodes, startNodes } from './support.ts'

const password = 's3cr@t/word'
const encoded = encodeURIComponent(password)

let nodes: Nodes
let url: string
let env: { HOLDFAST_STORE: string }
beforeAll(async () => {
  nodes = await startNodes(3, () => ({ password }))
  url = nodes.url(`trustRestarted=true&nodeTimeout=2000&password=${encoded}`)
  env = { HOLDFAST_STORE: url }
})
afterAll(async () => {
  await nodes[Symbol.asyncDispose]()
})

test('a command runs under a lease of a majority, and continues when a node dies', async () => {
  const job = ['sh', '-c', 'echo ready $HOLDFAST_STORE; while [ ! -e done ]; do sleep 0.1; done; exit 5']
  const running = start(['run', 'job', '--ttl', '6s', '--', ...job], { env })
  await running.prints(`ready ${url}`)
  expect((await nodes.holders('job')).filter(id => id !== undefined).length).toBeGreaterThanOrEqual(2)
  await nodes.servers[1]?.kill()
  const busy = await holdfast(['run', 'job', '--', 'true'], { env })
  expect(busy).toMatchObject({ code: 75, err: expect.stringMatching(/^holdfast: job is held by .* \(token \d+\)\n$/) })
  const { code, out, err } = await holdfast(['inspect', 'job'], { env })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/held by/)
  expect(out).toMatch(`127.0.0.1:${nodes.servers[1]?.port} unavailable: `)
  const listed = await holdfast(['ls', '--json'], { env })
  expect(JSON.parse(listed.out)).toMatchObject([{ name: 'job', state: 'held' }])
  writeFileSync(join(folder, 'done'), '')
  expect(await running.ended).toMatchObject({ code: 5, err: '' })
  await nodes.servers[1]?.start()
})

test('--at-least holds the name at a majority after the process has ended, until it expires', async () => {
  const begun = performance.now()
  const job = ['run', 'brief', '--at-least', '4s', '--', 'true']
  expect(await holdfast(job, { env })).toMatchObject({ code: 0, err: '' })
  expect((await nodes.holders('brief')).filter(id => id !== undefined).length).toBeGreaterThanOrEqual(2)
  expect(await holdfast(['run', 'brief', '--', 'true'], { env })).toMatchObject({ code: 75 })
  const next = await holdfast(['run', 'brief', '--wait', '20s', '--', 'echo', 'ran'], { env })
  expect(next).toMatchObject({ code: 0, out: 'ran\n' })
  expect(performance.now() - begun).toBeGreaterThanOrEqual(4_000)
  expect(await nodes.holders('brief')).toEqual([undefined, undefined, undefined])
})

test('--at-least longer than maxTtl keeps the process running, which continues to renew', async () => {
  const short = nodes.url(`maxTtl=6500&prefix=short&nodeTimeout=2000&password=${encoded}`)
  await nodes.age('short')
  const running = start(['run', 'long', '--ttl', '6s', '--at-least', '1m', '--', 'echo', 'ran'], {
    env: { HOLDFAST_STORE: short },
  })
  await running.prints('ran')
  const rival = await connect(short)
  for (const end = performance.now() + 8_000; performance.now() < end; await new Promise(next => setTimeout(next, 50)))
    expect(await rival.tryAcquire('long', { ttl: 1_000 })).toBeUndefined()
  expect(running.child.exitCode).toBeNull()
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, err: '' })
  const lease = await rival.tryAcquire('long', { ttl: 1_000 })
  expect(lease?.remaining).toBeGreaterThan(0)
  await lease?.release()
  await rival.close()
})

test('a waiter runs when the name is released or broken', async () => {
  const first = start(['run', 'job', '--', 'sh', '-c', 'echo ready; exec sleep 60'], { env })
  await first.prints('ready')
  const second = start(['run', 'job', '--wait', 'forever', '--', 'echo', 'second'], { env })
  await second.reports('waiting')
  const broken = await holdfast(['break', 'job'], { env })
  expect(broken.code).toBe(0)
  expect(await second.ended).toMatchObject({ code: 0, out: 'second\n' })
  expect((await first.ended).code).toBe(76)
})

test('of five that start in the same second one runs', async () => {
  const job = ['sh', '-c', 'echo ran; while [ ! -e done ]; do sleep 0.1; done']
  let refused = 0
  const all = Array.from({ length: 5 }, async () => {
    const result = await holdfast(['run', 'cron', '--', ...job], { env })
    refused += 1
    if (refused === 4) writeFileSync(join(folder, 'done'), '')
    return result
  })
  const results = await Promise.all(all)
  expect(results.map(({ code }) => code).sort((a, b) => Number(a) - Number(b))).toEqual([0, 75, 75, 75, 75])
  expect(results.map(({ out }) => out).join('')).toBe('ran\n')
})

test('no majority is said at once and at the end, with each node and no password', async () => {
  await nodes.servers[0]?.kill()
  await nodes.servers[2]?.kill()
  const { code, err } = await holdfast(['run', 'job', '--ttl', '1s', '--', 'true'], { env })
  expect(code).toBe(69)
  const why = 'no majority of the 3 nodes is available: .*ECONNREFUSED.*ECONNREFUSED.*'
  expect(err).toMatch(new RegExp(`^holdfast: the store does not answer, .*: ${why}\\nholdfast: ${why}\\n$`))
  expect(err).not.toMatch(/s3cr|word/)
  await nodes.heal()
})

test('a wrong URL is one line that shows no password', async () => {
  const own = `redlock://app:${encoded}@a,b:1?password=${encoded}&colour=blue`
  for (const options of [[], ['--json']]) {
    const { code, err } = await holdfast(['ls', '--store', own, ...options])
    expect(code).toBe(64)
    expect(err).toMatch(/the URL of a Redlock store has no option \\?"colour\\?"/)
    expect(err).not.toMatch(/s3cr|word@|blue/)
  }
})

test.each([
  ['redlock://a,b,c?password=s3cret&prefix=x', 'redlock://a,b,c?password=***&prefix=x'],
  ['redlock://a,b,c?prefix=x&password=s3cret', 'redlock://a,b,c?prefix=x&password=***'],
  ['redlocks://u:s3cret@a,u:s3cret@b,c/1?x=1', 'redlocks://u:***@b,c/1?x=1'],
])('%s is shown as %s', (text, shown) => {
  expect(mask(text)).toBe(shown)
})

test('a heartbeat in a thread keeps a lease while the event loop is blocked, also with a node dead', async () => {
  const locks = await connect(url, { heartbeat: 'thread', ttl: 2_000, maxBlocked: 20_000 })
  const rival = await connect(url)
  const lease = await locks.acquire('blocked')
  await lease.extend() // by the thread, which connects for it
  await nodes.servers[0]?.pause()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_500)
  lease.assertHeld()
  expect(await rival.tryAcquire('blocked')).toBeUndefined()
  nodes.servers[0]?.resume()
  expect(await lease.extend()).toBeGreaterThan(0)
  await lease.release()
  await until('it is free', () => rival.tryAcquire('blocked'))
  await locks.close()
  await rival.close()
})
