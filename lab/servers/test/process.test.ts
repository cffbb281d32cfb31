import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { findBinary } from '../binary.ts'
import { newFolder } from '../folder.ts'
import { stateOf } from '../process.ts'
import { type RedisServer, startRedis } from '../redis.ts'
import { until } from '../until.ts'

const servers: RedisServer[] = []

async function start(...options: Parameters<typeof startRedis>): Promise<RedisServer> {
  const server = await startRedis(...options)
  servers.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.stop()))
})

test('a started server serves, and nothing of it is left once stopped', async () => {
  const server = await start()
  const { pid, folder } = server
  expect(await server.call('PING')).toBe('PONG')
  await server.stop()
  await server.stop()
  expect(existsSync(folder)).toBe(false)
  expect(isAlive(pid)).toBe(false)
  expect(() => server.pid).toThrow(`the server on port ${server.port} is not running`)
})

test('a paused server carries a command out after its client gave up', async () => {
  const server = await start()
  const client = new Redis({ port: server.port, commandTimeout: 50, maxRetriesPerRequest: 0 })
  await until('it answers', () => client.ping()) // a busy machine takes longer for the first
  await server.pause()
  await expect(client.set('late', 'acquired')).rejects.toThrow('timed out')
  server.resume()
  expect(await until('the late request is carried out', () => server.call('GET', 'late'))).toBe('acquired')
  client.disconnect()
})

test('a paused server can be stopped', async () => {
  const server = await start()
  await server.pause()
  await server.stop()
  expect(server.isRunning).toBe(false)
})

test('a server restarted without data is another run on the same port', async () => {
  const server = await start()
  await server.call('SET', 'name', 'value')
  const before = await server.info('server')
  await server.restart()
  const after = await server.info('server')
  expect(after.run_id).not.toBe(before.run_id)
  expect(after.tcp_port).toBe(before.tcp_port)
  expect(await server.call('GET', 'name')).toBeNull()
})

test('a server that does not start says what it wrote, and leaves nothing', async () => {
  const failing = startRedis({ config: { 'no-such-setting': 1 } })
  await expect(failing).rejects.toThrow(/(redis|valkey)-server ended with 1.*no-such-setting/s)
})

test('servers and folders go when the process that started them is killed', async () => {
  const module = JSON.stringify(join(import.meta.dirname, '../redis.ts'))
  const script = `import(${module}).then(m => m.startRedis()).then(s => console.log(JSON.stringify([s.pid, s.folder])))`
  const tests = spawn(process.execPath, ['--experimental-strip-types', '--no-warnings', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [pid, folder] = await firstLine(tests)
  expect(isAlive(pid)).toBe(true)
  tests.kill('SIGKILL')
  await until('the server is gone', () => !isAlive(pid))
  await until('its folder is gone', () => !existsSync(join(folder, '..')))
})

test('a missing program is an error that names the package', () => {
  expect(() => findBinary('no-such-server', 'some-package')).toThrow(/no-such-server was not found.*some-package/)
})

test('an unknown generation of servers is refused', () => {
  vi.stubEnv('HOLDFAST_SERVERS', 'newer')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(() => findBinary('redis-server', 'redis-server')).toThrow(
    /HOLDFAST_SERVERS is newer; expected one of: .*newest/,
  )
})

test('a program unpacked into the checkout is found, with its libraries', () => {
  const unpacked = newFolder('unpacked')
  mkdirSync(join(unpacked, 'bin'))
  mkdirSync(join(unpacked, 'lib/x86_64-linux-gnu'), { recursive: true })
  copyFileSync('/bin/true', join(unpacked, 'bin/unpacked-server'))
  chmodSync(join(unpacked, 'bin/unpacked-server'), 0o755)
  expect(findBinary('unpacked-server', 'some-package', 'installed', unpacked)).toEqual({
    path: join(unpacked, 'bin/unpacked-server'),
    env: { LD_LIBRARY_PATH: join(unpacked, 'lib/x86_64-linux-gnu') },
  })
})

async function firstLine(child: ChildProcess): Promise<[number, string]> {
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer]
  return JSON.parse(line.toString())
}

// A zombie counts as ended: in a container, process 1 may not reap orphans.
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return stateOf(pid) !== 'Z'
}
