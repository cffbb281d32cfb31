import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Port, reservePort } from '../../../lab/servers/port.ts'
import { numbers } from '../../observe/test/exposition.ts'
import { testLocks } from '../../testing/index.ts'
import { Output } from '../output.ts'
import type { Release } from '../run/hold.ts'
import { CommandMetrics } from '../run/metrics.ts'
import { replaceFile } from '../run/metrics-file.ts'
import { folder, holdfast, holding, type Running, start, until } from './holdfast.ts'

const ports: Port[] = []
afterEach(() => Promise.all(ports.splice(0).map(port => port.release())))

async function freePort(): Promise<number> {
  const port = await reservePort()
  ports.push(port)
  return port.number
}

function readNumbers(path: string): Map<string, number> {
  return numbers(readFileSync(join(folder, path), 'utf8'))
}

test('--metrics-port serves the metrics of the lease only while the command runs', async () => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/metrics`
  const running = await holding('a"b', '--ttl', '2s', '--metrics-port', `${port}`)
  const name = '{name="a\\"b"}'
  await until(async () => {
    const found = numbers(await (await fetch(url)).text())
    return (
      found.get(`holdfast_lease_held${name}`) === 1 &&
      (found.get(`holdfast_heartbeat_latency_seconds_count${name}`) ?? 0) > 0
    )
  }, 'a counted heartbeat')
  const response = await fetch(url)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect((await fetch(url.replace('metrics', ''))).status).toBe(404)
  expect((await fetch(url, { method: 'POST' })).status).toBe(405)
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 143 })
  await expect(fetch(url)).rejects.toThrow('fetch failed')
})

test.each([
  ['127.0.0.1', 'evil.example', 421],
  ['127.0.0.1', 'evil.example:80', 421],
  ['127.0.0.1', '127.0.0.1.evil.example', 421],
  ['127.0.0.1', 'localhost', 200],
  ['127.0.0.1', '127.0.0.1:9464', 200],
  ['[::1]', '[::1]:9464', 200],
  ['[::1]', 'evil.example', 421],
])('L22: a server on %s answers requests for %s with %d', async (address, host, status) => {
  const port = await freePort()
  await holding('a', '--metrics-port', `${address}:${port}`)
  const to = address.replace(/[[\]]/g, '')
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    get({ host: to, port, path: '/metrics', headers: { host } }, response => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })
  expect(answer).toBe(status)
})

test('a server accepts at most 100 connections, so that they do not take all file descriptors', async () => {
  const port = await freePort()
  await holding('a', '--metrics-port', `${port}`)
  let refused = 0
  const sockets = Array.from({ length: 120 }, () =>
    connect(port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => {
        refused += 1
      }),
  )
  await until(
    () => refused === 20,
    () => `20 closed connections, not ${refused}`,
  )
  for (const socket of sockets) socket.destroy()
  await until(
    async () => (await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined))?.ok === true,
    'metrics',
  )
})

test('M3: a link that another user created next to the file is not followed', () => {
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'as it was')
  symlinkSync(victim, join(folder, `.a.prom.${process.pid}`))
  replaceFile(join(folder, 'a.prom'), 'new\n')
  expect(readFileSync(victim, 'utf8')).toBe('as it was')
  expect(readFileSync(join(folder, 'a.prom'), 'utf8')).toBe('new\n')
})

test('a port that is in use is an error before the command runs, and the name is released', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const { code, out, err } = await holdfast(['run', 'a', '--metrics-port', `${port}`, '--', 'echo', 'ran'])
  other.close()
  expect({ code, out }).toEqual({ code: 69, out: '' })
  expect(err).toContain(`--metrics-port: port ${port} of 127.0.0.1 is in use: choose another port`)
  expect(await holdfast(['inspect', 'a'])).toMatchObject({ code: 1 })
})

test('the next holder on this machine gets the port of the previous one', async () => {
  const options = ['--ttl', '5s', '--metrics-port', `${await freePort()}`]
  const first = await holding('a', ...options)
  const second = start(['run', 'a', '--wait', 'forever', ...options, '--', 'echo', 'ran'])
  await second.reports('waiting')
  first.kill('SIGTERM')
  expect(await second.ended).toMatchObject({ code: 0, out: 'ran\n' })
})

test('--metrics-file has the outcome of the last run and the totals of earlier ones', async () => {
  const file = ['--metrics-file', 'a.prom']
  const name = '{name="a"}'
  const begun = Date.now() / 1_000
  expect(await holdfast(['run', 'a', ...file, '--', 'sh', '-c', 'cp a.prom during.prom'])).toMatchObject({ code: 0 })
  const during = readNumbers('during.prom')
  expect(during.get(`holdfast_lease_held${name}`)).toBe(1)
  expect(during.get(`holdfast_run_start_timestamp_seconds${name}`)).toBeGreaterThanOrEqual(begun)
  expect(during.has(`holdfast_run_end_timestamp_seconds${name}`)).toBe(false)
  const success = readNumbers('a.prom').get(`holdfast_run_success_timestamp_seconds${name}`)
  expect(success).toBeGreaterThanOrEqual(begun)

  expect(await holdfast(['run', 'a', ...file, '--', 'sh', '-c', 'exit 3'])).toMatchObject({ code: 3 })
  const after = readNumbers('a.prom')
  expect(after.get('holdfast_runs_total{name="a",outcome="success"}')).toBe(1)
  expect(after.get('holdfast_runs_total{name="a",outcome="failure"}')).toBe(1)
  expect(after.get('holdfast_runs_total{name="a",outcome="lost"}')).toBe(0)
  expect(after.get(`holdfast_run_exit_code${name}`)).toBe(3)
  expect(after.get(`holdfast_run_success_timestamp_seconds${name}`)).toBe(success)
  expect(after.get(`holdfast_run_end_timestamp_seconds${name}`)).toBeGreaterThan(success as number)
  expect(after.get(`holdfast_run_duration_seconds${name}`)).toBeGreaterThan(0)
  expect(after.get(`holdfast_lease_held${name}`)).toBe(0)
  expect(readdirSync(folder).filter(each => each.startsWith('.'))).toEqual([])
})

test('a lost lease is an outcome of its own, and every series has the name', async () => {
  const running = await holding('a', '--ttl', '2s', '--metrics-file', 'a.prom')
  await holdfast(['break', 'a'])
  expect(await running.ended).toMatchObject({ code: 76 })
  const found = readNumbers('a.prom')
  expect(found.get('holdfast_runs_total{name="a",outcome="lost"}')).toBe(1)
  expect(found.get('holdfast_lease_lost_total{name="a",reason="gone"}')).toBe(1)
  expect([...found.keys()].filter(series => !series.includes('{name="a"'))).toEqual([])
})

test('a lease that could not be renewed is counted as lost', async () => {
  const running = await holding('a', '--ttl', '2s', '--metrics-file', 'a.prom')
  const file = new DatabaseSync(join(folder, 'leases.db'))
  file.exec('pragma busy_timeout = 10000; begin immediate')
  expect(await running.ended).toMatchObject({ code: 76 })
  file.close()
  expect(readNumbers('a.prom').get('holdfast_runs_total{name="a",outcome="lost"}')).toBe(1)
})

test('a lease that is lost during --at-least, after the command, does not make its success a loss', async () => {
  const waits = ['sh', '-c', 'echo ready; while [ ! -e go ]; do sleep 0.05; done']
  const options = ['--ttl', '4s', '--at-least', '20m', '--metrics-file', 'a.prom']
  const running = start(['run', 'a', ...options, '--', ...waits])
  await running.prints('ready')
  const file = new DatabaseSync(join(folder, 'leases.db'))
  file.exec('pragma busy_timeout = 10000; begin immediate')
  writeFileSync(join(folder, 'go'), '')
  expect(await running.ended).toMatchObject({ code: 0, err: expect.stringContaining('was not held for all of') })
  file.close()
  const found = readNumbers('a.prom')
  expect(found.get('holdfast_runs_total{name="a",outcome="success"}')).toBe(1)
  expect(found.get('holdfast_runs_total{name="a",outcome="lost"}')).toBe(0)
})

test('the end of a run is the end of its command, not of --at-least', async () => {
  const locks = testLocks()
  const lease = await locks.acquire('a')
  const metrics = new CommandMetrics('a', { address: undefined, file: join(folder, 'a.prom') }, new Output())
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    vi.setSystemTime(1_000_000)
    const release = async (): Promise<void> => {
      vi.setSystemTime(2_000_000)
      await locks.block(20_000) // past its ttl
      expect(lease.signal.aborted).toBe(true)
    }
    const work = async (releaseAfter: Release): Promise<number> => {
      await releaseAfter(lease, new Output(), 0)
      return 0
    }
    expect(await metrics.duringRun(lease, work, release)).toBe(0)
  } finally {
    vi.useRealTimers()
  }
  const found = readNumbers('a.prom')
  expect(found.get('holdfast_run_success_timestamp_seconds{name="a"}')).toBe(1_000)
  expect(found.get('holdfast_run_end_timestamp_seconds{name="a"}')).toBe(1_000)
})

test('the run marker is not in the metrics, and the file of a finished run reports no held lease', async () => {
  const left = ['--at-least', '20m', '--skip-if-ran-since', '1h']
  expect(await holdfast(['run', 'a', ...left, '--metrics-file', 'a.prom', '--', 'true'])).toMatchObject({ code: 0 })
  const text = readFileSync(join(folder, 'a.prom'), 'utf8')
  const found = numbers(text)
  expect(found.get('holdfast_lease_acquires_total{name="a",outcome="acquired"}')).toBe(1)
  expect(found.get('holdfast_lease_held{name="a"}')).toBe(0)
  expect(found.has('holdfast_lease_shortest_ttl_seconds{name="a"}')).toBe(false)
  expect(text).not.toContain('\u241f')
})

test('a run that does not acquire the name writes nothing', async () => {
  await holding('a')
  writeFileSync(join(folder, 'a.prom'), 'as it was\n')
  const { code } = await holdfast(['run', 'a', '--metrics-file', 'a.prom', '--', 'true'])
  expect(code).toBe(75)
  expect(readFileSync(join(folder, 'a.prom'), 'utf8')).toBe('as it was\n')
})

test('a file that can no longer be written causes one warning, and the command goes on', async () => {
  mkdirSync(join(folder, 'sub'))
  const args = ['run', 'a', '--metrics-file', 'sub/a.prom', '--', 'sh', '-c', 'rm -r sub; echo ran']
  const { code, out, err } = await holdfast(args)
  expect({ code, out }).toEqual({ code: 0, out: 'ran\n' })
  expect(err.match(/--metrics-file was not written: /g)).toHaveLength(1)
})

describe('elect', () => {
  const job = ['--', 'sh', '-c', 'echo up; exec sleep 60']

  test('serves from its start: a candidate is a waiter, then the holder', async () => {
    const candidate = (port: number): Running => start(['elect', 'service', '--metrics-port', `${port}`, ...job])
    const shown = async (port: number): Promise<(number | undefined)[]> => {
      const found = numbers(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
      return ['held', 'waiters'].map(state => found.get(`holdfast_lease_${state}{name="service"}`))
    }
    const [first, second] = [await freePort(), await freePort()]
    const leader = candidate(first)
    await leader.prints('up')
    const next = candidate(second)
    await next.reports('waiting')
    expect([await shown(first), await shown(second)]).toEqual([
      [1, 0],
      [0, 1],
    ])
    leader.kill('SIGTERM')
    await next.prints('up')
    expect(await shown(second)).toEqual([1, 0])
    await leader.ended
    await expect(shown(first)).rejects.toThrow('fetch failed')
  })

  test('the file counts terms, but no runs, because a service is not a job', async () => {
    const running = start(['elect', 'service', '--pause', '20ms', '--metrics-file', 'a.prom', '--', 'echo', 'up'])
    await running.prints(/(up\n){3}/)
    running.kill('SIGTERM')
    await running.ended
    const found = readNumbers('a.prom')
    expect(found.get('holdfast_lease_held{name="service"}')).toBe(0)
    expect(found.get('holdfast_lease_acquires_total{name="service",outcome="acquired"}')).toBeGreaterThanOrEqual(3)
    expect([...found.keys()].filter(series => !/^holdfast_(?!runs?_)\w+\{name="service"/.test(series))).toEqual([])
  })

  test('a candidate whose port is in use does not compete for the name', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, out, err } = await holdfast(['elect', 'service', '--metrics-port', `${port}`, ...job])
    other.close()
    expect({ code, out }).toEqual({ code: 69, out: '' })
    expect(err).toContain(`--metrics-port: port ${port} of 127.0.0.1 is in use: choose another port`)
  })
})

test.each([
  [['--metrics-port', '0'], '--metrics-port 0 is not a port: expected 1 to 65535, or HOST:PORT such as 0.0.0.0:9464'],
  [['--metrics-port', 'host:'], '--metrics-port host: is not a port'],
  [['--metrics-port', '70000'], '--metrics-port 70000 is not a port'],
  [['--metrics-file', 'a.txt'], '--metrics-file a.txt must end in .prom: the textfile collector reads nothing else'],
  [['--metrics-file', 'no/a.prom'], 'no does not exist: create it first'],
  [['--metrics-file', 'folder.prom'], '--metrics-file folder.prom is a folder: expected the path of a file in it'],
])('%j is refused before the command runs', async (options, message) => {
  mkdirSync(join(folder, 'folder.prom'))
  const { code, out, err } = await holdfast(['run', 'a', ...options, '--', 'echo', 'ran'])
  expect({ code, out }).toEqual({ code: 64, out: '' })
  expect(err).toContain(message)
})
