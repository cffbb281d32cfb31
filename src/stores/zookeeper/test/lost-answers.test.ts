import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Claim } from '../../../contract/store.ts'
import { Disconnected } from '../failure.ts'
import { remove } from '../protocol.ts'
import { claimOf, connectionTo, hold, nodesOf, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

/** As the server itself does some time after the last claim was deleted. */
async function removeNode(path: string): Promise<void> {
  const connection = await connectionTo(server)
  await connection.send(remove(path))
  connection.end(new Disconnected('it is done'))
}

test('a claim whose answer was lost has one node, and its lease', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  await hold(store, claimOf('warm'))
  for (let round = 0; round < 10; round += 1) {
    const claim = claimOf(`orphan-${round}`)
    const cut = proxy.cutAfterRequest(claim.id)
    await expect(store.acquire(claim, signal)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await cut
    await until('it is put', async () => (await nodesOf(server, claim.name)).length === 1)
    const { token } = await hold(store, claim)
    expect((await hold(store, claim)).token).toBe(token)
    expect(await nodesOf(server, claim.name)).toHaveLength(1)
    expect(await store.release(claim, signal)).toBe('released')
  }
})

test('S12: after a malformed answer to a write, its outcome is unknown', async () => {
  let isSpoiling = false
  const spoiling = createServer(client => {
    const target = connect(server)
    target.on('data', piece => client.write(isSpoiling ? piece.fill(7) : piece))
    client.on('data', piece => target.write(piece))
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(spoiling, 'listening')
  await using store = storeOf(spoiling.address() as AddressInfo)
  await hold(store, claimOf('warm-0'))
  const claim = claimOf('spoiled')
  isSpoiling = true
  await expect(store.acquire(claim, signal)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringContaining('invalid data'),
  })
  isSpoiling = false
  await until(
    'the write that was answered by nobody is done',
    async () => (await nodesOf(server, 'spoiled')).length === 1,
  )
  const { token } = await hold(store, claim)
  expect((await hold(store, claim)).token).toBe(token)
  expect(await nodesOf(server, 'spoiled')).toHaveLength(1)
  spoiling.close()
})

test('an unanswered node of a withdrawn claim is deleted before any other request is served', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  await hold(store, claimOf('warm-2'))
  const claim = claimOf('withdrawn')
  const cut = proxy.cutAfterRequest(claim.id)
  await expect(store.acquire(claim, signal)).rejects.toThrow('no answer came')
  await cut
  await proxy.refuse()
  await expect(store.release(claim, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await proxy.accept()
  await hold(store, claimOf('another'))
  expect(await nodesOf(server, 'withdrawn')).toEqual([])
})

test('a withdrawn claim whose node is created again, because its name was deleted meanwhile, leaves no node', async () => {
  await using proxy = await startProxy(server)
  await using slow = storeOf(proxy)
  await using others = storeOf(server)
  const [before, late, other] = [1, 2, 3].map(() => claimOf('again')) as [Claim, Claim, Claim]
  await hold(slow, before)
  await slow.release(before, signal)
  await others.renew(other, signal) // has it connected
  await removeNode('/holdfast/again')
  proxy.down.hold()
  const controller = new AbortController()
  const acquired = slow.acquire(late, controller.signal).catch(error => error)
  const { bytes } = proxy.down
  await until('the server has refused it', () => proxy.down.bytes > bytes)
  await hold(others, other)
  await others.release(other, signal)
  controller.abort()
  const released = slow.release(late, signal)
  await until('it is withdrawn', async () =>
    (await nodesOf(server, 'again')).some(node => node.startsWith(`x${late.id}`)),
  )
  proxy.down.pass()
  expect(await released).toBe('gone')
  await acquired
  await hold(slow, claimOf('after'))
  expect((await nodesOf(server, 'again')).filter(node => !node.startsWith('x'))).toEqual([])
})

test('a claim that is withdrawn while its node is created no longer moves in the queue, and leaves no node', async () => {
  await using proxy = await startProxy(server)
  await using slow = storeOf(proxy)
  await using others = storeOf(server)
  const [holder, claim] = [claimOf('aborted'), claimOf('aborted', { queue: true })]
  await hold(slow, claimOf('warm-5'))
  await hold(others, holder)
  proxy.down.hold()
  const controller = new AbortController()
  const acquired = slow.acquire(claim, controller.signal).catch(error => error)
  await until('it is put', async () => (await nodesOf(server, 'aborted')).length === 2)
  controller.abort()
  const released = slow.release(claim, signal)
  proxy.down.pass() // now it gets the answer to the creation, and only then that to the withdrawal
  await Promise.all([acquired, released])
  await hold(slow, claimOf('after-5'))
  expect(await nodesOf(server, 'aborted')).toEqual([expect.stringMatching(`^c${holder.id}`)])
})

test('of two clients that release one claim, none answers gone without a tombstone', async () => {
  await using proxy = await startProxy(server)
  await using slow = storeOf(proxy)
  await using others = storeOf(server)
  const claim = claimOf('twice')
  await hold(others, claim)
  await Array.fromAsync(slow.inspect({ name: claim.name }, signal)) // has it connected
  proxy.down.hold()
  const released = slow.release(claim, signal)
  await until('it is withdrawn', async () =>
    (await nodesOf(server, claim.name)).some(node => node.startsWith(`x${claim.id}`)),
  )
  expect(await others.release(claim, signal)).toBe('released')
  proxy.down.pass()
  expect(await released).toBe('gone')
  expect(await nodesOf(server, claim.name)).toEqual([expect.stringMatching(`^x${claim.id}`)])
})

test('of two releases of a claim at once, the one that ends it does not end the tombstone of the other', async () => {
  await using holder = storeOf(server)
  await using store = storeOf(server)
  const claim = claimOf('at-once')
  await hold(holder, claim)
  const answers = await Promise.all([store.release(claim, signal), store.release(claim, signal)])
  expect(answers.sort()).toEqual(['gone', 'released'])
  expect(await store.acquire(claim, signal)).toMatchObject({ held: false })
})

test('a claim whose lease was released by another client may be granted at once', async () => {
  await using holder = storeOf(server)
  await using store = storeOf(server)
  const claim = claimOf('granted-again', { ttl: 4_000 })
  const { token } = await hold(holder, claim)
  expect(await store.release(claim, signal)).toBe('released')
  expect((await hold(store, claim)).token).toBeGreaterThan(token)
})

test('the tombstone of a claim with a short session outlasts that', async () => {
  await using store = storeOf(server)
  await using others = storeOf(server)
  const [claim, other] = [claimOf('short', { ttl: 300 }), claimOf('of-the-session', { ttl: 300 })]
  for (const each of [claim, other]) await until('it holds', () => hold(store, each).catch(() => undefined))
  await others.break(claim.name, { by: '' }, signal)
  expect(await store.release(claim, signal)).toBe('gone')
  await until('the session is over', async () => (await nodesOf(server, other.name)).length === 0)
  expect(await nodesOf(server, claim.name)).toEqual([expect.stringMatching(`^x${claim.id}`)])
})

test('a tombstone is deleted although the answers to its creation and deletion were lost', async () => {
  await using proxy = await startProxy(server)
  await using store = storeOf(proxy)
  await hold(store, claimOf('tombstone'))
  const claim = claimOf('tombstone')
  const isThere = async (): Promise<boolean> =>
    (await nodesOf(server, 'tombstone')).some(node => node.startsWith(`x${claim.id}`))
  const made = proxy.cutAfterRequest(`x${claim.id}`)
  await expect(store.release(claim, signal)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await made
  await until('it is put', isThere)
  const deleted = proxy.cutAfterRequest(`x${claim.id}`)
  const looked = async (): Promise<boolean> => {
    await Array.fromAsync(store.inspect({ name: 'tombstone' }, signal)).catch(() => {})
    return true
  }
  await until('it is gone', async () => (await looked()) && !(await isThere()), { every: 100 })
  await deleted
})

test('a claim whose node is older than later holders gets a token above theirs', async () => {
  await using proxy = await startProxy(server)
  await using cutOff = storeOf(proxy)
  await using others = storeOf(server)
  const [first, second, third] = [claimOf('mark'), claimOf('mark', { queue: true }), claimOf('mark', { queue: true })]
  await hold(cutOff, claimOf('warm-3'))
  await hold(others, first)
  expect((await others.acquire(second, signal)).held).toBe(false)
  // It has never seen the name, so it tries to hold at once, and the refusal is lost.
  const cut = proxy.cutAfterRequest(third.id)
  await expect(cutOff.acquire(third, signal)).rejects.toThrow('no answer came')
  await cut
  await others.release(first, signal)
  const { token } = await hold(others, second)
  await others.release(second, signal)
  expect((await hold(cutOff, third)).token).toBeGreaterThan(token)
})

test('a claim whose node is older than a break gets a token above the break', async () => {
  await using proxy = await startProxy(server)
  await using cutOff = storeOf(proxy)
  await using others = storeOf(server)
  const [holder, late] = [claimOf('broken', { queue: true }), claimOf('broken', { queue: true })]
  await hold(cutOff, claimOf('warm-4'))
  await hold(others, holder)
  const cut = proxy.cutAfterRequest(late.id)
  await expect(cutOff.acquire(late, signal)).rejects.toThrow('no answer came')
  await cut
  const broken = await others.break('broken', { by: 'test' }, signal)
  expect((await hold(cutOff, late)).token).toBeGreaterThan(broken ?? 0n)
})
