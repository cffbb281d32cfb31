import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { connect } from '../index.ts'
import { breakShown } from './break.ts'

test('a break that a paused store carries out later is not said to have failed', async () => {
  await using server = await startRedis()
  const locks = await connect(server.url)
  onTestFinished(() => locks.close({ grace: 0 }))
  const { token } = await locks.acquire('job', { ttl: 600_000 })
  await server.pause()
  const [status, answer] = await breakShown(locks, { name: 'job', typed: 'job', of: `${token}` })
  expect([status, answer.error]).toEqual([502, expect.stringMatching(/^job may have been broken: the store did not/)])
  server.resume()
  await until('it was broken', async () => (await locks.inspect('job')).holders.length === 0)
})
