import { setTimeout as sleep } from 'node:timers/promises'
import { fields, startRedis } from '../../lab/servers/redis.ts'
import { clientsOf } from '../clients.ts'
import { Build } from '../holdfast.ts'
import { rough, type Scenario, whole } from '../scenario.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 3_600_000
/** A server answers nobody else while it makes so many keys. */
const AT_ONCE = 500_000

export const scenario: Scenario = {
  title: 'Cost of a dashboard for the server',
  about:
    'Ten viewers watch the dashboard of a Redis without other users. Commands are those that the dashboard sends per ' +
    'second; CPU is everything that the server uses. Foreign keys belong to other programs in the same database. Found ' +
    'is how many names were shown at the end.',
  rounds: 1,
  variants: isQuick => {
    if (isQuick)
      return [{ name: '200 names, 100,000 foreign keys', settings: { seconds: 1, names: 200, keys: 100_000 } }]
    const seconds = 20
    const many = 10_000_000
    return [
      { name: '200 names', settings: { seconds, names: 200, keys: 0 } },
      { name: '5,000 names', settings: { seconds, names: 5_000, keys: 0 } },
      { name: `200 names, ${whole(many)} foreign keys`, settings: { seconds, names: 200, keys: many } },
    ]
  },
  takesPart: peer => peer.over === 'redis' && peer.can.includes('copies'),
  async measure(trial) {
    const { seconds = 1, keys = 0 } = trial.settings
    const redis = trial.use(await startRedis({ config: { 'enable-debug-command': 'local' } }))
    for (let made = 0; made < keys; made += AT_ONCE)
      await redis.call('DEBUG', 'POPULATE', Math.min(AT_ONCE, keys - made), `foreign:${made}`, 8)
    const worker = trial.start('work', { ...trial.place, ports: [redis.port] })
    await worker.reached('watched')
    const used = async (): Promise<{ calls: number; cpu: number }> => {
      const { used_cpu_user, used_cpu_sys } = await redis.info('cpu')
      const stats = Object.entries(fields(String(await redis.call('INFO', 'commandstats'))))
      // Commands that a script calls count as well.
      const own = stats.filter(([name]) => /_(scan|eval|evalsha)$/.test(name))
      const calls = own.map(([, text]) => Number(/calls=(\d+)/.exec(text)?.[1]))
      return { calls: calls.reduce((a, b) => a + b, 0), cpu: (Number(used_cpu_user) + Number(used_cpu_sys)) * 1_000 }
    }
    const before = await used()
    await sleep(seconds * 1_000)
    const after = await used()
    worker.go()
    const { found } = await worker.values
    return { calls: (after.calls - before.calls) / seconds, cpu: (after.cpu - before.cpu) / seconds, found }
  },
  columns: [
    { title: 'commands/s', value: 'calls', format: rough },
    { title: 'server CPU ms/s', value: 'cpu', format: rough },
    { title: 'found', value: 'found', format: whole },
  ],
}

export async function work({ place, settings, reached }: Stage): Promise<Values> {
  const build = new Build()
  const [{ createLocks }, { redis }, { dashboard }] = [await build.main(), await build.redis(), await build.dashboard()]
  const [client] = clientsOf(place)
  const locks = createLocks(redis(client))
  const { names = 0 } = settings
  for (let made = 0; made < names; made += 500) {
    const next = Array.from({ length: Math.min(500, names - made) }, (_, index) => `job-${made + index}`)
    await Promise.all(next.map(name => locks.acquire(name, { ttl: TTL, heartbeat: false })))
  }
  const board = dashboard(locks, { authorize: () => 'read' })
  let found = 0
  const view = async (): Promise<void> => {
    const { body } = await board.fetch(new Request('http://localhost/?api=events'))
    for await (const part of body ?? []) found = Buffer.from(part).toString().split('"name":').length - 1
  }
  const viewers = Array.from({ length: 10 }, view)
  await sleep(5_000) // the first looks are at full speed
  await reached('watched')
  await board[Symbol.asyncDispose]()
  await Promise.all(viewers)
  await locks.close({ grace: 0 })
  client.disconnect()
  return { found }
}
