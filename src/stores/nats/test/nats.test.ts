import { join } from 'node:path'
import { DiscardPolicy } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type NatsCluster, type NatsServer, startNats, startNatsCluster } from '../../../../lab/servers/nats.ts'
import { until } from '../../../../lab/servers/until.ts'
import { Stack } from '../../../../test/harnesses/stack.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { claimOf, hold, signal } from '../../../../test/support.ts'
import { createLocks, connect as locksAt } from '../../../index.ts'
import { migrate as migrateUrl } from '../../../migrate.ts'
import { cas, type Register } from '../../cas/index.ts'
import { keyOf } from '../../cas/key.ts'
import { migrate, nats } from '../index.ts'
import { whileOpen } from '../open.ts'
import { registerOf } from '../register.ts'

const stack = new Stack()
afterAll(() => stack.end())

async function kvmAt(servers: string | string[]): Promise<Kvm> {
  const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 50, pingInterval: 1_000, timeout: 10_000 }
  return new Kvm(stack.adopt(await connect(options), connection => connection.close()))
}

describe('one server', () => {
  let server: NatsServer
  let kvm: Kvm
  beforeAll(async () => {
    server = stack.use(await startNats())
    kvm = await kvmAt(server.address)
    await migrate(kvm)
  })

  test.each(['delete', 'purge'] as const)('a version does not return after a %s', async how => {
    const register = registerOf(async () => kvm, 'holdfast')
    const kv = await kvm.open('holdfast')
    const first = await register.write(how, 'one', undefined, signal, 0)
    await kv[how](how)
    expect(await register.read(how, signal)).toBeUndefined()
    expect(await register.write(how, 'stale', first, signal, 0)).toBeUndefined()
    const second = await register.write(how, 'two', undefined, signal, 0)
    expect(second).toBeGreaterThan(first as number)
    expect(await register.write(how, 'stale', first, signal, 0)).toBeUndefined()
    expect(await register.write(how, 'again', undefined, signal, 0)).toBeUndefined()
    expect((await register.read(how, signal))?.value).toBe('two')
  })

  test('tokens rise although the record was deleted', async () => {
    await using locks = createLocks(nats(kvm))
    const first = await locks.acquire('deleted')
    await (await kvm.open('holdfast')).delete('deleted')
    await using second = await locks.acquire('deleted')
    expect(second.token).toBeGreaterThan(first.token)
  })

  test('a read of what was before a grant does not report its lease as lost', async () => {
    const register = registerOf(async () => kvm, 'holdfast')
    const [earlier, claim] = [claimOf('lagging'), claimOf('lagging')]
    await using store = cas(register)
    await hold(store, earlier)
    await store.release(earlier, signal)
    const before = await register.read(keyOf('lagging'), signal)
    await hold(store, claim)
    const lagging: Register<number> = { ...register, read: async () => before }
    await using other = cas(lagging)
    await expect(other.renew({ ...claim, ttl: 3_000 }, signal)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await expect(other.annotate({ ...claim, ttl: 3_000 }, signal)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    lagging.read = register.read
    expect(await other.renew(claim, signal)).toMatchObject({ held: true })
    expect(await other.renew(earlier, signal)).toBeUndefined()
  })

  test('a read of what was before its own grant does not keep a holder from a renewal', async () => {
    const register = { ...registerOf(async () => kvm, 'holdfast'), maxBytes: 400_000 }
    const [earlier, claim] = [claimOf('own'), claimOf('own')]
    const lagging = { ...register }
    await using store = cas(lagging)
    await using other = cas(register)
    await hold(other, earlier)
    const before = await register.read(keyOf('own'), signal)
    await other.release(earlier, signal)
    await hold(store, claim)
    lagging.read = async () => before
    await Array.fromAsync(store.inspect({ name: 'own' }, signal))
    expect(await store.renew(claim, signal)).toMatchObject({ held: true })
  })

  test('a bucket that was created again is learned, although its revisions are lower', async () => {
    await kvm.create('again')
    const register = registerOf(async () => kvm, 'again')
    await using store = cas(register)
    await using other = cas(register)
    const [claim, waiter] = [claimOf('a'), claimOf('a', { queue: true })]
    await hold(store, claim)
    expect(await other.acquire(waiter, signal)).toMatchObject({ held: false })
    expect(await store.renew(claim, signal)).toMatchObject({ held: true })
    await (await kvm.open('again')).destroy()
    await kvm.create('again')
    await using third = cas(register)
    const holder = claimOf('a')
    await hold(third, holder)
    expect(await store.renew(claim, signal)).toBeUndefined()
    expect(await other.acquire(waiter, signal)).toMatchObject({ held: false })
    expect(await third.renew(holder, signal)).toMatchObject({ held: true })
    await third.release(holder, signal)
    expect(await other.acquire(waiter, signal)).toMatchObject({ held: true })
  })

  test('a bucket that is missing, or forgets records, is refused with what to do', async () => {
    await kvm.create('short', { ttl: 60_000 })
    const manager = await kvm.js.jetstreamManager()
    await kvm.create('old')
    await manager.streams.update('KV_old', { discard: DiscardPolicy.Old })
    const acquire = async (bucket: string): Promise<unknown> => {
      await using locks = createLocks(nats(kvm, { bucket }))
      return await locks.acquire('name', { wait: 2_000 }).catch((error: unknown) => error)
    }
    const refused = (code: string, says: string): object => ({ code, message: expect.stringContaining(says) })
    const unfit = (says: string): object => ({ ...refused('STORE_UNAVAILABLE', says), retryable: false })
    expect(await acquire('missing')).toMatchObject(refused('NOT_MIGRATED', 'run holdfast migrate'))
    expect(await acquire('short')).toMatchObject(unfit('a ttl below 32 days'))
    expect(await acquire('old')).toMatchObject(unfit('the policy to discard old records'))
  })

  test('a server before 2.10 is refused', async () => {
    const old = await kvmAt(server.address)
    Object.assign(old.js.nc.info as object, { version: '2.9.25' })
    await using locks = createLocks(nats(old))
    const refused = { code: 'STORE_UNAVAILABLE', retryable: false, message: expect.stringContaining('2.9.25') }
    await expect(locks.acquire('name', { wait: 2_000 })).rejects.toMatchObject(refused)
    await expect(migrate(old, { bucket: 'old-server' })).rejects.toMatchObject(refused)
    await expect((await kvm.open('old-server')).status()).rejects.toThrow('stream not found')
  })

  test('the bucket is created for the server that the client has found by then', async () => {
    const own = await kvmAt(server.address)
    const { nc } = own.js as unknown as { nc: { protocol: { info?: object } } }
    const found = { ...nc.protocol.info, cluster: 'tests' }
    delete nc.protocol.info // as while the client connects again
    const asked = vi.spyOn(own.js, 'jetstreamManager')
    asked.mockImplementationOnce(async () => {
      Object.assign(nc.protocol, { info: found })
      return kvm.js.jetstreamManager()
    })
    const created = vi.spyOn(own, 'create').mockRejectedValueOnce(new Error('not created'))
    await expect(migrate(own, { bucket: 'found' })).rejects.toThrow('not created')
    expect(created).toHaveBeenCalledWith('found', { replicas: 3, allow_direct: false })
  })

  test('an abort ends requests over the connection of a URL', async () => {
    const controller = new AbortController()
    const asking = whileOpen(
      `nats://${server.address}/holdfast`,
      async (own, bucket) => {
        await server.pause()
        setImmediate(() => controller.abort())
        return (await own.open(bucket, { allow_direct: false })).status()
      },
      controller.signal,
    )
    await expect(asking.finally(() => server.resume())).rejects.toThrow('closed')
  })

  test('the first request over a closed connection says so', async () => {
    const own = await kvmAt(server.address)
    await own.js.nc.close()
    await using locks = createLocks(nats(own))
    await expect(locks.acquire('name', { wait: 500 })).rejects.toThrow('closed')
  })

  test('another client is refused', () => {
    expect(() => nats(kvm.js.nc as never)).toThrow('needs a Kvm of @nats-io/kv 3')
    expect(() => nats(kvm, { bucket: 'a.b' })).toThrow('the bucket must be')
  })

  test('a URL names servers and a bucket', async () => {
    const url = `nats://${server.address}/by-url`
    expect(await migrateUrl(url)).toEqual(['by-url'])
    await using locks = await locksAt(url)
    expect(await locks.using('name', async () => 'done')).toBe('done')
  })

  test('a key that is written while keys are listed is listed once', async () => {
    const register = registerOf(async () => kvm, 'holdfast')
    const kv = await (await kvmAt(server.address)).open('holdfast')
    const keys = Array.from({ length: 100 }, (_, index) => `listed-${index}`)
    await Promise.all(keys.map(key => kv.put(key, 'one')))
    let isOver = false
    const writing = (async () => {
      for (let count = 0; !isOver; count += 1) await kv.put(`listed-${count % keys.length}`, 'two')
    })()
    for (let round = 0; round < 50; round += 1) {
      const listed = await Array.fromAsync(register.list('listed-', signal), ({ key }) => key)
      expect(listed).toHaveLength(new Set(listed).size)
    }
    isOver = true
    await writing
  })

  test.each(['while it is armed', 'while it waits'])(
    'a watch that is not wanted any more %s leaves no consumer',
    async when => {
      const register = registerOf(async () => kvm, 'holdfast')
      await register.write('watched', 'one', undefined, signal, 0)
      const manager = await kvm.js.jetstreamManager()
      const consumers = async (): Promise<unknown[]> => Array.fromAsync(manager.consumers.list('KV_holdfast'))
      for (let round = 0; round < 10; round += 1) {
        const controller = new AbortController()
        const { promise: changed, resolve } = Promise.withResolvers<void>()
        const arming = register.watch?.('watched', resolve, controller.signal)
        if (when === 'while it waits') await changed
        controller.abort()
        await arming
      }
      await until('no consumer is left', async () => (await consumers()).length === 0)
    },
  )

  test('stores that were closed leave nothing at the connection of the caller', async () => {
    const own = await kvmAt(server.address)
    const listens = vi.spyOn(own.js.nc, 'status')
    for (let count = 0; count < 3; count += 1) {
      await using store = nats(own)
      await hold(store, claimOf(`closed ${count}`))
    }
    expect(listens).toHaveBeenCalledOnce()
  })

  test('a process ends although its store was closed while it connected', async () => {
    const script = `
      import { connect } from ${JSON.stringify(join(ROOT, 'src/index.ts'))}
      await connect('nats://${server.address}/holdfast', { timeout: 300 }).catch(error => console.log(error.code))`
    await server.pause()
    const onOutput = (): void => server.resume()
    expect(await scriptNode(['--input-type=module', '-e', script], { folder: ROOT, onOutput })).toMatchObject({
      code: 0,
      stdout: 'STORE_UNAVAILABLE\n',
    })
  })

  test('a value that fills the message of the server is written', async () => {
    const register = registerOf(async () => kvm, 'holdfast')
    await register.read('large', signal)
    const value = 'x'.repeat(register.maxBytes)
    await register.write('large'.padEnd(765, '-'), value, undefined, signal, 0)
    expect((await register.read('large'.padEnd(765, '-'), signal))?.value).toBe(value)
  })
})

describe('a cluster of three', { timeout: 120_000 }, () => {
  let cluster: NatsCluster
  let kvms: Kvm[]
  beforeAll(async () => {
    cluster = stack.use(await startNatsCluster())
    kvms = await Promise.all(cluster.addresses.map(address => kvmAt([address])))
    await until('the bucket exists', async () => {
      return migrate(kvms[0] as Kvm, { bucket: 'three' }).then(
        () => true,
        () => undefined,
      )
    })
  }, 120_000)

  test('of writes that arrive together at three servers, one happens', async () => {
    const registers = kvms.map(kvm => registerOf(async () => kvm, 'three'))
    let version: number | undefined
    for (let round = 0; round < 50; round += 1) {
      const writes = registers.flatMap((register, index) =>
        [0, 1, 2].map(copy => register.write('contended', `${round} ${index} ${copy}`, version, signal, 0)),
      )
      const happened = (await Promise.all(writes)).filter(written => written !== undefined)
      expect(happened).toHaveLength(1)
      version = happened[0]
      for (const register of registers) expect((await register.read('contended', signal))?.version).toBe(version)
    }
  })

  test('reads see every write although the bucket lets replicas answer', async () => {
    await until('the bucket exists', () =>
      (kvms[0] as Kvm).create('direct', { replicas: 3, allow_direct: true }).catch(() => undefined),
    )
    const registers = kvms.map(kvm => registerOf(async () => kvm, 'direct'))
    let version: number | undefined
    for (let round = 0; round < 100; round += 1) {
      version = await registers[round % 3]?.write('key', String(round), version, signal, 0)
      const read = await Promise.all(registers.map(register => register.read('key', signal)))
      expect(read.map(entry => entry?.value)).toEqual(Array(3).fill(String(round)))
    }
  })

  test('a lease is kept, and its waiter served, when the leader of the bucket is killed', async () => {
    const all = await kvmAt(cluster.addresses)
    await using locks = createLocks(nats(all, { bucket: 'three' }), { ttl: 30_000 })
    await using others = createLocks(nats(await kvmAt(cluster.addresses), { bucket: 'three' }), { ttl: 30_000 })
    const lease = await locks.acquire('name')
    const waiter = others.acquire('name')
    waiter.catch(() => {}) // it is awaited below
    const { streamInfo } = await (await all.open('three')).status()
    const leader = cluster.servers[Number(streamInfo.cluster?.leader?.slice(1))] as NatsServer
    await leader.kill()
    await until('another server leads', () => locks.using('other', async () => true).catch(() => undefined))
    expect(await lease.release()).toBe('released')
    await using second = await waiter
    expect(second.token).toBeGreaterThan(lease.token)
    await leader.start()
  })
})
