import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startNats } from '../../../../lab/servers/nats.ts'
import { until } from '../../../../lab/servers/until.ts'
import { ROOT } from '../../../../test/script-node.ts'
import { connect } from '../../../index.ts'
import { migrate } from '../../../migrate.ts'

/** What the page says that a user of leases needs. */
const [, PERMISSIONS = ''] =
  /\n```\n(publish: [\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/stores/nats.md'), 'utf8')) ?? []

const CREATE = '"$JS.API.STREAM.CREATE.KV_holdfast"'

async function acquireAt(url: string): Promise<void> {
  await using locks = await connect(url, { timeout: 500 })
  await locks.acquire('name')
}

describe('users', () => {
  const user = (name: string, permissions: string): string =>
    `{ user: ${name}, password: secret, permissions: { ${permissions} } }`
  const config = `jetstream: enabled
authorization: { users: [
  ${user('app', PERMISSIONS)}
  ${user('owner', PERMISSIONS.replace('[', `[ ${CREATE},`))}
  ${user('reader', PERMISSIONS.replace('"$KV.holdfast.>",', ''))}
] }`
  const start = async () => {
    const server = await startNats(config)
    const urlOf = (login: string): string => `nats://${login}@${server.address}/holdfast`
    return { urlOf, [Symbol.asyncDispose]: () => server.stop() }
  }

  test('with the permissions of the page do all that leases need', async () => {
    await using server = await start()
    const url = server.urlOf('app:secret')
    await expect(migrate(url)).rejects.toMatchObject({
      code: 'ACCESS_DENIED',
      message: expect.stringContaining(CREATE.slice(1, -1)),
    })
    expect(await migrate(server.urlOf('owner:secret'))).toEqual(['holdfast'])
    await using locks = await connect(url)
    await using others = await connect(url)
    const lease = await locks.acquire('name')
    const waiting = others.acquire('name')
    await until('it waits', async () => (await locks.inspect('name')).waiters.length === 1)
    expect(await Array.fromAsync(locks.list())).toHaveLength(2) // the lease and its waiter
    await lease.extend()
    expect(await lease.release()).toBe('released')
    await using second = await waiting
    expect(second.token).toBeGreaterThan(lease.token)
  })

  test('without them, and with another password, are refused with what to do', async () => {
    await using server = await start()
    await migrate(server.urlOf('owner:secret'))
    const denied = (says: string): object => ({ code: 'ACCESS_DENIED', message: expect.stringContaining(says) })
    await expect(acquireAt(server.urlOf('reader:secret'))).rejects.toMatchObject(denied('docs/stores/nats.md'))
    await expect(acquireAt(server.urlOf('app:wrong'))).rejects.toMatchObject(denied('user, password or token'))
  })
})

describe('JetStream is off', () => {
  test('for the server', async () => {
    await using server = await startNats('')
    const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('start nats-server with -js') }
    const url = `nats://${server.address}/holdfast`
    await expect(migrate(url)).rejects.toMatchObject(refused)
    await expect(acquireAt(url)).rejects.toMatchObject(refused)
  })

  test('for the account', async () => {
    await using server = await startNats(
      'jetstream: enabled, accounts: { A: { users: [{ user: app, password: secret }] } }',
    )
    const refused = {
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringContaining('enable it for the account'),
    }
    const url = `nats://app:secret@${server.address}/holdfast`
    await expect(migrate(url)).rejects.toMatchObject(refused)
    await expect(acquireAt(url)).rejects.toMatchObject(refused)
  })
})
