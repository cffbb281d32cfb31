import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import type { Report } from '../../../cli/show/ttl-report.ts'
import { holdfast, type Running, start } from '../../../cli/test/holdfast.ts'
import { type Nodes, startNodes } from '../../../stores/redlock/test/support.ts'

async function reportOf(running: Running): Promise<Report> {
  const { code, out, err } = await running.ended
  expect(err).not.toContain('error')
  expect(code).toBe(0)
  return JSON.parse(out)
}

/** Milliseconds pass. */
function pass(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

describe('over SQLite', () => {
  test('the result has everything that is documented, and no name is held afterwards', async () => {
    const { code, out, err } = await holdfast(['ttl', '--for', '5s', '--json'])
    expect(code).toBe(0)
    const number = expect.any(Number)
    const result: Report = JSON.parse(out)
    expect(result).toEqual({
      store: 'sqlite',
      duration: number,
      requestRate: 10,
      heartbeats: number,
      failed: 0,
      latency: { p50: number, p99: number, p999: null, worst: number }, // of fewer than 1,000
      unresponsiveness: number,
      loopDelay: { p99: number, worst: number },
      gc: { pauses: number, worst: number, total: number },
      histogram: expect.arrayContaining([{ from: number, to: number, count: number }]),
      advice: {
        leastTtl: number,
        reason: expect.stringMatching(/^p99 .* ms, unresponsive .* ms, worst loop delay .* ms: /),
        ttl: number,
        heartbeat: number,
        choices: expect.arrayContaining([{ ttl: number, heartbeat: number, tolerates: number, takeover: number }]),
      },
      unknown: [expect.stringContaining('locks.advice()'), expect.stringContaining('failover')],
    })
    const { heartbeats, histogram, latency, advice } = result
    expect(histogram.reduce((sum, { count }) => sum + count, 0)).toBe(heartbeats)
    expect(heartbeats).toBeLessThanOrEqual(51)
    expect(latency?.p50).toBeLessThanOrEqual(latency?.p99 ?? 0)
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(200) // the shortest ttl over SQLite
    for (const { ttl, tolerates, takeover } of advice?.choices ?? []) {
      expect(ttl).toBeGreaterThanOrEqual(advice?.leastTtl ?? 0)
      expect(tolerates).toBeGreaterThan(0)
      expect(takeover).toBeGreaterThan(ttl)
    }
    expect(JSON.parse(err.split('\n')[0] ?? '')).toMatchObject({ event: 'measuring', rate: 10, duration: 5_000 })
    expect((await holdfast(['ls', '--json'])).out).toBe('[]\n')
  })

  test('the text has the percentiles, a histogram, the advice and its limits', async () => {
    const { out, err } = await holdfast(['ttl', '--for', '5s'])
    expect(err).toBe('holdfast: measures for 5 s at up to 10 renewals a second; Ctrl-C ends it early\n')
    for (const line of [
      /^\d\d heartbeats over sqlite in [\d.]+ s, none failed$/m,
      /^latency +p50 \S+ m?s, p99 \S+ m?s, worst \S+ m?s$/m,
      /^ +< \S+ ms {2}#+ +\d+$/m,
      /^unresponsive {5}\S+ m?s$/m,
      /^event loop +p99 \S+ m?s late, worst \S+ m?s; \d+ garbage collections?, worst \S+ m?s$/m,
      /^p99 .*: /m,
      /^Use a ttl of \d+ s, with a heartbeat every \S+ s\. .* at least \S+ m?s\.$/m,
      /^ +ttl +heartbeat +tolerates, with one lost +takeover at most$/m,
      /^ +\d+ s +[\d.]+ s +[\d.]+ s +[\d.]+ s$/m,
      /^ {2}The event loop .* of your application/m,
    ])
      expect(out).toMatch(line)
    expect(Math.max(...out.split('\n').map(line => line.length))).toBeLessThanOrEqual(130)
  })

  test('Ctrl-C ends it with what was measured so far', async () => {
    const running = start(['ttl', '--for', '1h', '--json'])
    await running.reports('measuring')
    await pass(6_000)
    running.kill('SIGINT')
    const { code, out, err } = await running.ended
    expect(code).toBe(0)
    expect(err).toContain('"event":"stopped"')
    const { duration, heartbeats, advice }: Report = JSON.parse(out)
    expect(duration).toBeLessThan(20_000)
    expect(heartbeats).toBeGreaterThanOrEqual(20)
    expect(advice?.leastTtl).toBeGreaterThan(0)
    expect((await holdfast(['ls', '--json'])).out).toBe('[]\n')
  })

  test('too few heartbeats are reported, and no ttl is advised', async () => {
    const { code, out } = await holdfast(['ttl', '--for', '1s'])
    expect(code).toBe(2)
    expect(out).toMatch(/^Too few heartbeats to advise a ttl: \d+ w\w+ answered, 20 are needed\.$/m)
    expect(out).not.toContain('Use a ttl')
  })

  test('a process that was paused for a second measures a loop delay, and a longer ttl is advised', async () => {
    const running = start(['ttl', '--for', '5s', '--json'])
    await running.reports('measuring')
    await pass(500)
    running.kill('SIGSTOP')
    await pass(1_200)
    running.kill('SIGCONT')
    const { loopDelay, advice } = await reportOf(running)
    expect(loopDelay.worst).toBeGreaterThanOrEqual(1_000)
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(1_000 / 0.3025)
  })

  test('a lease that is broken ends the measurement', async () => {
    const running = start(['ttl', '--for', '1h', '--json'])
    await running.reports('measuring')
    const { name } = JSON.parse(running.err.split('\n')[0] ?? '')
    expect(name).toMatch(/^holdfast-ttl-[0-9a-f]{16}$/)
    expect((await holdfast(['break', name])).code).toBe(0)
    const { code, err } = await running.ended
    expect(code).toBe(2)
    expect(err).toContain('the measurement ended early: the lease')
  })
})

describe('over Redis', () => {
  let redis: RedisServer
  let proxy: TcpProxy
  let url: string

  beforeEach(async () => {
    redis = await startRedis()
    proxy = await startProxy(redis)
    url = `redis://${proxy.host}:${proxy.port}`
  })

  afterEach(async () => {
    await proxy.stop()
    await redis.stop()
  })

  test('the advice follows the delay of the network', async () => {
    proxy.up.delay(100)
    proxy.down.delay(100)
    const { latency, advice, heartbeats } = await reportOf(start(['ttl', '--store', url, '--for', '7s', '--json']))
    expect(heartbeats).toBeGreaterThanOrEqual(20)
    expect(latency?.p50).toBeGreaterThanOrEqual(199)
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(1_990)
    expect(advice?.choices[0]?.takeover).toBeGreaterThanOrEqual(2_000 + 2 * 199)
  })

  test('a paused server is measured as unresponsiveness, and as the heartbeats that would have waited for it', async () => {
    const running = start(['ttl', '--store', url, '--for', '6s', '--json'])
    await running.reports('measuring')
    await answers()
    await redis.pause()
    await pass(1_500)
    redis.resume()
    const { unresponsiveness, latency, advice } = await reportOf(running)
    expect(unresponsiveness).toBeGreaterThanOrEqual(1_000)
    expect(latency?.p99).toBeGreaterThanOrEqual(1_000) // and not the one in fifty that was really sent
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(10_000)
  })

  test('a server that refuses for a while shows as failures and unresponsiveness', async () => {
    const running = start(['ttl', '--store', url, '--for', '8s', '--json'])
    await running.reports('measuring')
    await answers()
    await proxy.refuse()
    proxy.reset()
    await pass(1_500)
    await proxy.accept()
    const { unresponsiveness, failed, advice } = await reportOf(running)
    expect(failed).toBeGreaterThan(0)
    expect(unresponsiveness).toBeGreaterThanOrEqual(1_000)
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(1_000 / 0.3025)
  })

  /** Resolves when some heartbeats were answered. */
  async function answers(): Promise<void> {
    for (const until = proxy.down.bytes + 200; proxy.down.bytes < until; ) await pass(10)
  }
})

describe('over the five servers of a Redlock', () => {
  let nodes: Nodes
  let url: string

  beforeEach(async () => {
    nodes = await startNodes(5)
    url = nodes.url()
  })

  afterEach(() => nodes[Symbol.asyncDispose]())

  test.each([
    ['that all serve', 0],
    ['of which one is down', 1],
  ])('%s, heartbeats are answered by a majority, and a ttl is advised', async (_, down) => {
    for (const server of nodes.servers.slice(0, down)) await server.kill()
    const { store, failed, heartbeats, advice } = await reportOf(
      start(['ttl', '--store', url, '--for', '6s', '--json']),
    )
    expect({ store, failed }).toEqual({ store: 'redlock of 5', failed: 0 })
    expect(heartbeats).toBeGreaterThanOrEqual(20)
    expect(advice?.leastTtl).toBeGreaterThanOrEqual(200) // the shortest ttl over Redlock
    const [choice] = advice?.choices ?? []
    expect(choice?.takeover).toBeGreaterThan(choice?.ttl ?? 0)
    expect((await holdfast(['ls', '--json', '--store', url])).out).toBe('[]\n')
  })

  test('without a majority it gives the reason of each node, and has not claimed a name', async () => {
    for (const server of nodes.servers.slice(1)) await server.kill()
    const { code, out, err } = await holdfast(['ttl', '--store', url])
    expect({ code, out }).toEqual({ code: 69, out: '' })
    expect(err).toMatch(/^holdfast: no majority of the 5 nodes is available: .*\n$/)
    for (const { port } of nodes.servers.slice(1)) expect(err).toContain(`ECONNREFUSED 127.0.0.1:${port}`)
    expect(await nodes.servers[0]?.call('KEYS', '*')).toEqual([])
  })
})

describe('bad input', () => {
  test.each([
    [['ttl', '--for', '0s'], '--for 0s: expected from 1s to 24h'],
    [['ttl', '--for', '25h'], '--for 25h: expected from 1s to 24h'],
    [['ttl', '--for', '60'], '--for 60: a duration needs a unit: did you mean 60s or 60ms?'],
    [['ttl', '--for', 'long'], '--for long is not a duration'],
    [['ttl', '--fro', '60s'], 'holdfast ttl has no option --fro: did you mean --for?; see holdfast ttl --help'],
    [['ttl', 'job'], 'ttl takes options only, no argument such as job; see holdfast ttl --help'],
    [['ttl', '--store', 'memory:'], 'it locks nothing'],
    [['ttl', '--store', 'foo://x'], 'foo'],
    [['ttl', '--store', 'sqlite:missing/leases.db'], 'missing'],
  ])('%j', async (args, message) => {
    const { code, out, err } = await holdfast(args)
    expect({ code, out }).toEqual({ code: 64, out: '' })
    expect(err).toContain(message)
  })

  test('a store that cannot be reached is an error within seconds', async () => {
    const proxy = await startProxy({ port: 1 })
    await proxy.refuse()
    const { code, out, err } = await holdfast(['ttl', '--store', `redis://127.0.0.1:${proxy.port}`])
    await proxy.stop()
    expect({ code, out }).toEqual({ code: 69, out: '' })
    expect(err).toMatch(/ECONNREFUSED|did not answer/)
  })
})
