import { expect, test } from 'vitest'
import { startEtcd } from '../../../lab/servers/etcd.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { startZooKeeper } from '../../../lab/servers/zookeeper.ts'
import { descendants, holdfast, start, until } from '../../cli/test/holdfast.ts'

const engines: Readonly<Record<string, () => Promise<{ url: string } & AsyncDisposable>>> = {
  redis: startRedis,
  postgres: async () => {
    const server = await startPostgres()
    return { url: `${server.url()}?create=true`, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  },
  etcd: async () => {
    const server = await startEtcd()
    return { url: `etcd://${server.endpoint}`, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  },
  zookeeper: async () => {
    const server = await startZooKeeper()
    const url = `zookeeper://${server.host}:${server.port}`
    return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  },
}

test.each(Object.keys(engines))('what a run leaves behind in %s outlives its process', async name => {
  await using server = await (engines[name] as (typeof engines)[string])()
  const env = { HOLDFAST_STORE: server.url }
  const options = ['--at-least', '15s', '--skip-if-ran-since', '20s']
  expect(await holdfast(['run', 'job', ...options, '--', 'echo', 'ran'], { env })).toMatchObject({
    code: 0,
    out: 'ran\n',
  })
  const records: { name: string; state: string }[] = JSON.parse((await holdfast(['ls', '--json'], { env })).out)
  expect(records).toMatchObject([
    { name: 'job', state: 'held' },
    { name: 'job', state: 'ran' },
  ])
  expect(await holdfast(['run', 'job', '--', 'echo'], { env })).toMatchObject({ code: 75 })
  await holdfast(['break', 'job'], { env })
  expect(await holdfast(['run', 'job', ...options, '--', 'echo'], { env })).toMatchObject({
    code: 0,
    out: '',
    err: expect.stringContaining('skipped'),
  })
})

test('holdfast keeps running, until a signal, if the store would not keep the lease that long', async () => {
  await using server = await (engines.zookeeper as (typeof engines)[string])()
  const env = { HOLDFAST_STORE: server.url }
  const running = start(['run', 'job', '--at-least', '10m', '--ttl', '3s', '--', 'sh', '-c', 'echo done; exit 3'], {
    env,
  })
  await running.prints('done')
  await until(() => descendants(running.pid).length === 0, 'the command to end')
  expect(running.child.exitCode).toBeNull()
  expect(await holdfast(['run', 'job', '--', 'echo'], { env })).toMatchObject({ code: 75 })
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 3 })
  expect(await holdfast(['run', 'job', '--', 'echo', 'ran'], { env })).toMatchObject({ code: 0, out: 'ran\n' })
})
