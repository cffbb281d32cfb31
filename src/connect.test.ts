import { expect, test, vi } from 'vitest'
import { connect, openStore } from './connect.ts'
import { createLocks } from './create-locks.ts'
import { memory } from './stores/memory/index.ts'

test('connect closes the store that it opened when the defaults are bad', async () => {
  const store = await openStore('memory:bad-defaults')
  const close = vi.spyOn(store, Symbol.asyncDispose)
  await expect(connect('memory:bad-defaults', { ttl: 1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(close).toHaveBeenCalledOnce()
})

test('all locks of a process with one memory URL share their leases', async () => {
  const one = await connect('memory:shared', { ttl: 5_000 })
  const two = await connect('memory:shared')
  const apart = await connect('memory:apart')
  const lease = await one.acquire('a')
  expect(lease.ttl).toBe(5_000)
  expect(await two.tryAcquire('a')).toBeUndefined()
  expect(await apart.tryAcquire('a')).toBeDefined()
})

test.each([
  [
    'mongodb://localhost',
    'no store has the scheme mongodb: use one of sqlite: memory: redis: rediss: redlock: redlocks: postgres: postgresql: mysql: mariadb: etcd: etcds: zookeeper:',
  ],
  ['localhost:6379', 'has no scheme: write one before localhost:6379, such as redis://localhost:6379'],
  ['user:12345@host', 'no store has the scheme user: use one of'],
  [' redis://localhost', 'the URL of the store begins or ends with white space or a quotation mark: remove it'],
  ['redis://localhost\n', 'the URL of the store begins or ends with white space or a quotation mark: remove it'],
  ['"redis://localhost"', 'the URL of the store begins or ends with white space or a quotation mark: remove it'],
  ['redis://s3cret@host', 'has a user name and no password: write a password without a user as redis://:PASSWORD@host'],
  ['mysql://app:s3cret@host', 'the URL of the MySQL store names no database: write mysql://'],
  ['__proto__:x', 'the URL of the store has no scheme: use one of sqlite: memory:'],
  ['leases.db', 'the URL of the store has no scheme: use one of sqlite: memory:'],
  ['', 'the URL of the store has no scheme: use one of sqlite: memory:'],
  [undefined, 'the store must be a URL in a string, such as sqlite:leases.db, not undefined'],
  [new URL('memory:'), 'the store must be a URL in a string, such as sqlite:leases.db, not object'],
])('openStore rejects %o', async (url, message) => {
  await expect(openStore(url as string)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(message),
  })
})

test.each(['redis', 'rediss', 'redlock', 'postgres', 'mysql', 'etcd', 'zookeeper'])(
  'F10: an invalid port in a URL of %s is reported, and no part of a password',
  async scheme => {
    for (const hosts of ['a:99999', 'user:77777@a:99999', 'a:1,b:99999', '[::1]:99999', 'a:99999/x?prefix=y'])
      await expect(openStore(`${scheme}://${hosts}`)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: 'the URL of the store has the port 99999: give one from 0 to 65535',
      })
    for (const hosts of ['user:77777/x@a', 'user:77777?x@a', 'user:77777,x@a', 'a:99998,user:77777@b']) {
      const error = await openStore(`${scheme}://${hosts}`).then(
        store => store[Symbol.asyncDispose](),
        (reason: Error) => reason.message,
      )
      expect(String(error)).not.toContain('no port')
    }
  },
)

test('memory: in production is reported once, and memory() is not', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  vi.stubEnv('NODE_ENV', 'production')
  await createLocks(memory()).close()
  expect(warn).not.toHaveBeenCalled()
  for (const url of ['memory:', 'memory:other']) await (await connect(url)).close()
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining('NODE_ENV is production'), { type: 'HoldfastWarning', code: 'HOLDFAST_MEMORY' }],
  ])
  vi.unstubAllEnvs()
  warn.mockRestore()
})
