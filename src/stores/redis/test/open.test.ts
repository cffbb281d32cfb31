import { chmodSync, cpSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { openStore } from '../../../connect.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

const password = 'p@ss:w/rd#%?'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis({ password, users: ['app on >pw ~* &* +@all'] })
})
afterAll(() => server.stop())

test('opens what the URL names: user, password, database, prefix', async () => {
  const at = `127.0.0.1:${server.port}`
  const claim = claimOf('a')
  {
    await using store = await openStore(`redis://:${encodeURIComponent(password)}@${at}/3?prefix=team%20a`)
    expect(store.kind).toBe('redis')
    await hold(store, claim)
  }
  await using again = await openStore(`redis://app:pw@${at}/3?prefix=team%20a`)
  await hold(again, claim)
  const waiter = claimOf('a', { queue: true })
  expect(await acquire(again, waiter)).toMatchObject({ held: false })
  await again.release(claim, signal)
  expect(await acquire(again, waiter)).toMatchObject({ held: true })
  await using elsewhere = await openStore(`redis://app:pw@${at}`)
  await hold(elsewhere, claimOf('a'))
  const info = await server.info('keyspace')
  expect(Object.keys(info).filter(name => name.startsWith('db'))).toEqual(['db0', 'db3'])
})

test('F12: a URL shares the names of a client with a key prefix, if it names both prefixes', async () => {
  const client = new Redis({ port: server.port, password, keyPrefix: 'app:', lazyConnect: true })
  await using store = storeOf(client)
  await hold(store, claimOf('shared', { owner: 'client' }))
  const url = `redis://:${encodeURIComponent(password)}@127.0.0.1:${server.port}?prefix=app:holdfast`
  await using named = await openStore(url)
  expect(await look(named, { prefix: '' })).toMatchObject([{ name: 'shared', owner: 'client' }])
})

test('M10: a password that is sent to another machine without TLS causes one warning per host', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const hosts = ['redis://app:x@127.0.0.1', 'redis://redis-m10', 'rediss://app:x@redis-m10', 'redis://app:x@redis-m10']
  for (const url of [...hosts, 'redlock://redis-m10,app:x@redlock-m10,127.0.0.1?trustRestarted=true'])
    await (await openStore(url))[Symbol.asyncDispose]()
  const warning = { type: 'HoldfastWarning', code: 'HOLDFAST_PASSWORD_IN_CLEAR' }
  expect(emit.mock.calls).toEqual([
    [expect.stringMatching(/Redis goes to redis-m10 without TLS/), warning],
    [expect.stringMatching(/Redis goes to redlock-m10 without TLS/), warning],
  ])
  emit.mockRestore()
})

test('says what is wrong with a URL, and never what the password is', async () => {
  const wrong: Record<string, RegExp> = {
    'redis://': /has no host/,
    'redis:': /has no host/,
    'redis:localhost': /has no host/,
    'redis://user:s3cret@host:99999': /port 99999/,
    'redis://user:s3cret@ho st': /is invalid/,
    'redis://user:s3cret@host/zero': /database in the URL of the Redis store must be a number/,
    'redis://user:s3cret@host/1/2': /database in the URL of the Redis store must be a number/,
    'redis://user:s3cret@host/-1': /database in the URL of the Redis store must be a number/,
    'redis://user:s3cret@host#1': /has a #/,
    'redis://user:s3cret%@host': /a % that encodes nothing/,
    'redis://user:s3cret@host?ttl=5': /no option "ttl", only prefix, minTtl/,
    'redis://user:s3cret@host?prefix=': /prefix is empty/,
    'redis://user:s3cret@host?prefix=a&prefix=b': /prefix is given twice/,
  }
  for (const [url, message] of Object.entries(wrong)) {
    const error = await failureOf(openStore(url))
    expect(error, url).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) })
    expect(error.message).not.toMatch('s3cret')
  }
})

test('L16: no message repeats a password with a special character that nobody encoded', async () => {
  for (const special of ['?', '/', '#', '%', '?a=1&'])
    for (const password of [`12${special}s3cret`, `x${special}s3cret`]) {
      const error = await failureOf(openStore(`redis://user:${password}@host`))
      expect(error, special).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(error.message).not.toMatch('s3cret')
    }
})

test('reports a wrong password in a URL, and a server that does not respond', async () => {
  await using wrong = await openStore(`redis://app:s3cret@127.0.0.1:${server.port}`)
  const refused = await failureOf(hold(wrong, claimOf('a')))
  expect(refused).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching('correct them'),
  })
  expect(`${refused.message}${refused.stack}`).not.toMatch('s3cret')
  await using down = await startRedis()
  await down.kill()
  await using nobody = await openStore(`redis://app:s3cret@127.0.0.1:${down.port}`)
  const failed = await failureOf(hold(nobody, claimOf('a')))
  expect(failed).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching('ECONNREFUSED') })
  expect(failed.message).not.toMatch('s3cret')
})

describe('the client library', () => {
  // The package in a place from which no client can be resolved, as if linked or global.
  const home = newFolder('alone')
  const project = join(home, 'project')

  beforeAll(() => {
    cpSync(join(ROOT, 'src'), join(home, 'package/src'), { recursive: true })
    writeFileSync(join(home, 'package/package.json'), '{ "name": "holdfast", "type": "module" }')
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    symlinkSync(join(home, 'package'), join(project, 'node_modules/holdfast'))
    writeFileSync(
      join(home, 'try.mjs'),
      // A folder above may have libraries that are none of this test's.
      `import { registerHooks } from 'node:module'
      const [url, installed] = process.argv.slice(2)
      registerHooks({
        resolve(specifier, context, next) {
          const isDriver = ['ioredis', 'redis', '@redis/client', 'iovalkey'].includes(specifier)
          const isNested = context.parentURL?.includes('/node_modules/')
          if (!isDriver || isNested || (specifier === installed && !context.parentURL.includes('/package/')))
            return next(specifier, context)
          throw Object.assign(new Error("Cannot find module '" + specifier + "'"), { code: 'MODULE_NOT_FOUND' })
        },
      })
      const { connect } = await import('${home}/package/src/index.ts')
      try {
        const locks = await connect(url)
        const lease = await locks.acquire('x')
        console.log('held', lease.token > 0n)
        await lease.release()
        await locks.close()
      } catch (error) {
        console.log(error.code + ': ' + error.message)
      }`,
    )
  })

  const attempt = async (scheme: string, installed = '', folder = project, env = {}): Promise<string> => {
    const url = `${scheme}://app:pw@127.0.0.1:${server.port}`
    const { code, stdout, stderr } = await scriptNode([join(home, 'try.mjs'), url, installed], { folder, env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout.trim()
  }

  test('is reported with the command that installs it if it is missing', async () => {
    expect(await attempt('redis')).toBe(
      'DRIVER_MISSING: a redis: store needs a client of Redis: npm i ioredis where holdfast is installed (npm i -g for ' +
        'a global one), or set HOLDFAST_DRIVERS to the folder of a project that has it; a bundler must keep holdfast external',
    )
    expect(await attempt('rediss')).toMatch('npm i ioredis')
  })

  test.each(['iovalkey', '@redis/client', 'redis', 'ioredis'])(
    'is %s if the project of the current folder has it, and this package',
    async name => {
      mkdirSync(join(project, 'node_modules/@redis'), { recursive: true })
      const link = join(project, 'node_modules', name)
      rmSync(link, { force: true })
      symlinkSync(join(ROOT, 'node_modules', name), link)
      expect(await attempt('redis', name)).toBe('held true')
    },
  )

  test('is reported with its own error if it is broken', async () => {
    const other = join(home, 'broken')
    mkdirSync(join(other, 'node_modules/ioredis'), { recursive: true })
    rmSync(join(other, 'node_modules/holdfast'), { force: true })
    symlinkSync(join(home, 'package'), join(other, 'node_modules/holdfast'))
    writeFileSync(join(other, 'node_modules/ioredis/index.js'), 'throw new Error("half installed")')
    const url = `redis://app:pw@127.0.0.1:${server.port}`
    const { stdout } = await scriptNode([join(home, 'try.mjs'), url, 'ioredis'], { folder: other })
    expect(stdout).toMatch('half installed')
  })

  describe('M5: in a folder that another user may have prepared', () => {
    const prepared = join(home, 'prepared')
    const below = join(prepared, 'sub/folder')
    const planted = join(prepared, 'node_modules/ioredis/index.js')

    beforeAll(() => {
      for (const path of [below, dirname(planted)]) mkdirSync(path, { recursive: true })
      writeFileSync(planted, 'throw new Error("ran")')
    })

    test('is not loaded, from there nor from a folder above', async () => {
      for (const folder of [prepared, below])
        expect(await attempt('redis', 'ioredis', folder)).toMatch(/^DRIVER_MISSING: .*set HOLDFAST_DRIVERS/)
    })

    test('is loaded if HOLDFAST_DRIVERS names it', async () => {
      expect(await attempt('redis', 'ioredis', home, { HOLDFAST_DRIVERS: below })).toMatch(/ran/)
    })

    test('is not loaded if it links to this package, and others may write there', async () => {
      rmSync(join(prepared, 'node_modules/holdfast'), { force: true })
      symlinkSync(join(home, 'package'), join(prepared, 'node_modules/holdfast'))
      const folder = dirname(planted)
      for (const path of [planted, folder]) {
        const { mode } = statSync(path)
        chmodSync(path, 0o777)
        expect(await attempt('redis', 'ioredis', below)).toMatch(
          `because others own or may write to ${path}: let only yourself`,
        )
        chmodSync(path, mode)
      }
      expect(await attempt('redis', 'ioredis', below)).toMatch(/ran/)
      // Like Windows, which does not tell who may write to a file.
      const env = { NODE_OPTIONS: '--import data:text/javascript,delete%20process.geteuid' }
      expect(await attempt('redis', 'ioredis', below, env)).toMatch(/^DRIVER_MISSING: .*set HOLDFAST_DRIVERS/)
    })
  })
})
