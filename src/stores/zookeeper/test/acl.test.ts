import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { systemClock } from '../../../contract/time.ts'
import { createLocks } from '../../../create-locks.ts'
import type { Connection } from '../connection.ts'
import { Disconnected } from '../failure.ts'
import { Group } from '../group.ts'
import { Paths } from '../paths.ts'
import { create, READ, remove } from '../protocol.ts'
import { claimOf, connectionTo, failureOf, hold, nodesOf, setAcl, settingsWith, signal, storeOf } from './support.ts'

const auth = { user: 'app', password: 's3cret' }
const anyone = { permissions: 31, scheme: 'world', id: 'anyone' }

let server: ZooKeeperServer
/** With the user of the stores, and without. */
let own: Connection
let stranger: Connection

beforeAll(async () => {
  server = await startZooKeeper()
  own = await connectionTo(server, auth)
  stranger = await connectionTo(server)
})
afterAll(async () => {
  for (const connection of [own, stranger]) connection.end(new Disconnected('over'))
  await server.stop()
})

function refusalOf(path: string): object {
  const text = `others may change ${path} \\(its permissions are world:anyone:cdrwa\\)`
  const cure = `"addauth digest app:<password>" and "setAcl -R ${path} auth::cdrwa" in zkCli.sh`
  const message = expect.stringMatching(new RegExp(`^${text}.*${cure}$`))
  return { code: 'STORE_UNAVAILABLE', retryable: false, message }
}

describe('M4: with auth', () => {
  test('a name that was created without auth is refused, also to waiters, until it belongs to the user', async () => {
    const chroot = '/before'
    await using open = storeOf(server, { chroot })
    const earlier = claimOf('nightly')
    await hold(open, earlier)
    await using store = storeOf(server, { chroot, auth })
    await using locks = createLocks(store)
    expect(await failureOf(locks.acquire('nightly'))).toMatchObject(refusalOf('/before/holdfast'))
    await own.send(setAcl('/before/holdfast', 'auth'))
    expect(await failureOf(locks.acquire('nightly'))).toMatchObject(refusalOf('/before/holdfast/nightly'))
    await open.release(earlier, signal)
    expect(await failureOf(locks.tryAcquire('nightly'))).toMatchObject(refusalOf('/before/holdfast/nightly'))
    await own.send(setAcl('/before/holdfast/nightly', 'auth'))
    await using lease = await locks.acquire('nightly')
    const path = `/before/holdfast/nightly/${(await nodesOf(server, 'nightly'))[0]}`
    await expect(stranger.send(remove(path))).rejects.toMatchObject({ message: 'NOAUTH' })
    lease.assertHeld()
  })

  test('a name that was checked is checked again after its node was replaced', async () => {
    await using store = storeOf(server, { chroot: '/replaced', auth })
    const claim = claimOf('a')
    await hold(store, claim)
    await store.release(claim, signal)
    for (const path of ['/replaced/holdfast/a', '/replaced/holdfast']) await own.send(remove(path))
    await own.send(setAcl('/replaced', 'world'))
    await stranger.send(create('/replaced/holdfast', '', anyone, 'persistent'))
    await stranger.send(create('/replaced/holdfast/a', '', anyone, 'persistent'))
    const next = claimOf('a')
    for (let round = 0; round < 2; round += 1)
      expect(await failureOf(store.acquire(next, signal))).toMatchObject(refusalOf('/replaced/holdfast'))
    expect(await store.release(next, signal)).toBe('released')
  })

  test('permissions are read once for each name, and others may be allowed to read', async () => {
    await using store = storeOf(server, { chroot: '/read', auth })
    await hold(store, claimOf('a'))
    await own.send(setAcl('/read', 'world', 1))
    const requests = async (): Promise<number> => Number(/^Received: (\d+)/m.exec(await server.ask('srvr'))?.[1])
    const cost = async (): Promise<number> => {
      const [claim, before] = [claimOf('b'), await requests()]
      await hold(store, claim)
      const after = await requests()
      await store.release(claim, signal)
      return after - before
    }
    const first = await cost()
    expect(await cost()).toBe(first - 4) // nor is the node of the name made again
  })
})

test('each call that permissions forbid is refused at once, and served as soon as they allow it', async () => {
  const refused = { code: 'ACCESS_DENIED', message: expect.stringMatching(/may not do what leases need.*NOAUTH/) }
  await own.send(create('/denied', '', { ...anyone, permissions: READ }, 'persistent'))
  await using store = storeOf(server, { chroot: '/denied' })
  const [claim, other, waiter] = [claimOf('allowed'), claimOf('allowed'), claimOf('allowed', { queue: true })]
  const early = [store.acquire(claim, signal), store.acquire(waiter, signal), store.release(claim, signal)]
  for (const error of await Promise.all(early.map(failureOf))) expect(error).toMatchObject(refused)
  await own.send(create('/allowed', '', anyone, 'persistent'))
  await using allowed = storeOf(server, { chroot: '/allowed' })
  const { token } = await hold(allowed, claim)
  const name = '/allowed/holdfast/allowed'
  const nodes = [name, `${name}/${(await nodesOf(server, 'allowed'))[0]}`]
  for (const node of nodes) await own.send(setAcl(node, 'auth'))
  const calls = [
    allowed.acquire(other, signal),
    allowed.acquire(waiter, signal),
    allowed.renew(claim, signal),
    allowed.annotate(claim, signal),
    allowed.break('allowed', { by: '' }, signal),
    Array.fromAsync(allowed.inspect({ prefix: '' }, signal)),
    allowed.release(other, signal),
  ]
  for (const error of await Promise.all(calls.map(failureOf))) expect(error).toMatchObject(refused)
  for (const node of nodes) await own.send(setAcl(node, 'world'))
  expect(await allowed.renew(claim, signal)).toMatchObject({ token })
  expect(await allowed.acquire(waiter, signal)).toMatchObject({ held: false })
  expect(await allowed.release(claim, signal)).toBe('released')
  await hold(allowed, waiter)
})

test('a name that this process may not read costs no other lease of the session', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  const [claim, secret] = [claimOf('public'), claimOf('secret', { queue: true })]
  const { token } = await hold(store, claim)
  const cut = proxy.cutAfterRequest(secret.id)
  await failureOf(store.acquire(secret, signal))
  await cut
  await until('it is put', async () => (await nodesOf(server, 'secret')).length === 1)
  await own.send(setAcl('/holdfast/secret', 'auth'))
  expect(await store.renew(claim, signal)).toMatchObject({ token })
})

test('a claim that was refused before it had a node is forgotten, and one that may not be read keeps its node', async () => {
  const { path } = await own.send(create('/blind', '', anyone, 'persistent'))
  for (const [name, permissions] of [
    ['closed', 0],
    ['unread', 4],
  ] as const) {
    if (name === 'closed') await own.send(create(`${path}/holdfast`, '', anyone, 'persistent'))
    await own.send(create(`${path}/holdfast/${name}`, '', anyone, 'persistent'))
    await own.send(setAcl(`${path}/holdfast/${name}`, 'world', permissions))
  }
  const nodesAfterPut = async (chroot: string, name: string): Promise<unknown[]> => {
    const settings = { ...settingsWith(server, systemClock()), paths: new Paths(chroot, 'holdfast') }
    const group = new Group(settings, 10_000, { wake: () => {}, lose: () => {}, hold: () => {} })
    const claim = claimOf(name)
    await expect(group.put(await group.connection(0), claim, 'c')).rejects.toThrow('NOAUTH')
    const kinds = group.positions.all().map(({ node }) => node?.kind)
    await group.close()
    return kinds
  }
  expect(await nodesAfterPut('/blind', 'closed')).toEqual([])
  expect(await nodesAfterPut('/denied', 'any')).toEqual([])
  expect(await nodesAfterPut('/blind', 'unread')).toEqual(['c'])
})

test('a chroot that is there is used by its user, who has no rights on the folders above it', async () => {
  await own.send(create('/apps', '', anyone, 'persistent'))
  await own.send(create('/apps/billing', '', anyone, 'persistent'))
  await own.send(setAcl('/apps/billing', 'auth'))
  await own.send(setAcl('/apps', 'world', READ))
  await using store = storeOf(server, { chroot: '/apps/billing', auth })
  await hold(store, claimOf('a'))
  await using other = storeOf(server, { chroot: '/apps/missing/below', auth })
  expect(await failureOf(other.acquire(claimOf('a'), signal))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining('NOAUTH'),
  })
})

test('applications with users of their own may have chroots in one folder that was missing', async () => {
  await using first = storeOf(server, { chroot: '/shared/folder/a', auth })
  await hold(first, claimOf('a'))
  await using second = storeOf(server, { chroot: '/shared/folder/b', auth: { user: 'other', password: 'x' } })
  await hold(second, claimOf('a'))
  await expect(stranger.send(create('/shared/folder/a/x', '', anyone, 'persistent'))).rejects.toThrow('NOAUTH')
})
