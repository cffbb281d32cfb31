import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { createLocks } from '../../../index.ts'
import { claimOf, hold, storeOf } from './support.ts'

let server: EtcdServer

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

/** A program that uses the package from source. */
function run(program: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const start = `
    import { connect } from '${ROOT}/src/index.ts'
    const locks = await connect('etcd://${server.endpoint}')`
  return scriptNode(['--input-type=module', '--eval', start + program], { folder: ROOT })
}

test('a program that never closes its locks ends, although it held and waited', async () => {
  const { code, stdout, stderr } = await run(`
    const lease = await locks.acquire('a')
    const waiting = locks.acquire('a')
    setTimeout(() => lease.release(), 200)
    await (await waiting).release()
    await locks.acquire('kept', { ttl: 2_000 })
    console.log('ends')`)
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('it holds the lease "kept"') })
  expect(stdout).toBe('ends\n')
})

test('a program that waits for a lease does not end before', async () => {
  await using store = storeOf([server])
  await hold(store, claimOf('held', { ttl: 2_000 }))
  const { code, stdout } = await run(`
    const lease = await locks.acquire('held')
    await lease.release()
    console.log('held')`)
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'held\n' })
})

test('the command line takes its URL', async () => {
  const main = `${ROOT}/src/cli/main.ts`
  const args = ['run', 'job', '--store', `etcd://${server.endpoint}`, '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN']
  const { code, stdout } = await scriptNode([main, ...args], { folder: ROOT })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) })
})

test('cuts leave no connection behind', async () => {
  await using proxy = await startProxy(server)
  const locks = createLocks(storeOf([proxy]))
  for (let round = 0; round < 10; round += 1) {
    const lease = await locks.acquire('b')
    const waiting = locks.acquire('b')
    proxy.reset()
    await until('it is released', () =>
      lease.release().then(
        () => true,
        () => false,
      ),
    )
    await (await waiting).release()
  }
  expect(proxy.connections).toBeLessThan(10)
  await locks.close()
  await until('none is left', () => proxy.connections === 0)
})
