import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startEtcd } from '../../../../lab/servers/etcd.ts'
import { startZooKeeper } from '../../../../lab/servers/zookeeper.ts'
import { takeoverTime } from '../../../contract/time.ts'
import { connect } from '../../../index.ts'

/** Milliseconds for the processes of a busy machine. */
const SLACK = 2_000

const HOLDER = `
  const { connect } = await import(process.argv[1])
  const locks = await connect(process.argv[2])
  await locks.acquire('a', { ttl: Number(process.argv[3]) })
  console.log('held')
  setInterval(() => {}, 1_000)`

/** Milliseconds from the death of a holder to the next one, and those that the store says are the most. */
async function takeover(url: string, ttl: number): Promise<{ took: number; most: number }> {
  await using locks = await connect(url, { ttl })
  const source = new URL('../../../index.ts', import.meta.url).href
  const holder = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, source, url, String(ttl)])
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  const died = performance.now()
  await using lease = await locks.acquire('a')
  lease.assertHeld()
  return { took: performance.now() - died, most: takeoverTime(ttl, locks.store.guarantees.takeover) }
}

test('a dead holder over etcd is followed within the declared time', async () => {
  await using server = await startEtcd()
  const { took, most } = await takeover(`etcd://${server.host}:${server.port}`, 1_000)
  expect(took).toBeLessThan(most + SLACK)
  expect(most).toBe(3_000)
})

test('a dead holder over ZooKeeper is followed within the declared time, which is longer than its ttl', async () => {
  await using server = await startZooKeeper()
  const { took, most } = await takeover(`zookeeper://${server.host}:${server.port}`, 3_000)
  expect(took).toBeGreaterThan(3_000)
  expect(took).toBeLessThan(most + SLACK)
})
