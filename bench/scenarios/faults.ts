import { startRedis } from '../../lab/servers/redis.ts'
import { pause } from '../peer.ts'
import { block, moment, rounded, type Scenario } from '../scenario.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 2_500
/** For which a holder is watched. */
const WATCH = 7_500

export const scenario: Scenario = {
  title: 'Faults: whether and when the holder is notified',
  about:
    `One renewed lease of ${TTL / 1_000} s. At the latest ${TTL} ms after the last renewal, the server drops it or another ` +
    'client can acquire it, so a later notification is too late. Each client has the default settings of its library, but waits without limit.',
  rounds: 3,
  isSideBySide: true,
  variants: isQuick => {
    const kill = { name: 'the server is killed', settings: { kill: 1 } }
    if (isQuick) return [{ ...kill, settings: { ...kill.settings, watch: 2 * TTL } }]
    return [
      { name: 'the event loop is busy for twice the ttl', settings: { block: 1 } },
      kill,
      { name: 'the server is stopped', settings: { stop: 1 } },
    ]
  },
  takesPart: peer => peer.can.includes('held') && peer.over === 'redis',
  async measure(trial) {
    const { kill, stop } = trial.settings
    // Its own, for it is not left standing.
    const redis = trial.use(await startRedis())
    const worker = trial.start('work', { ...trial.place, ports: [redis.port] })
    await worker.reached('held')
    // Renewed once at least, so that it is a lease in the middle of its life.
    await pause(TTL)
    const struckAt = moment()
    if (kill) await redis.kill()
    if (stop) await redis.pause()
    worker.go()
    const { lostAt, ...values } = await worker.values
    return { ...values, reported: typeof lostAt === 'number' ? lostAt - struckAt : undefined }
  },
  columns: [
    { title: 'reported after ms', value: 'reported', format: rounded, none: `not in ${WATCH} ms` },
    {
      title: 'asked right after it',
      value: 'asked',
      format: value => (value ? 'says held: wrong' : 'says lost: right'),
      none: 'cannot be asked',
    },
    { title: 'errors that nobody caught', value: 'uncaught', format: rounded },
  ],
}

export async function work({ peer, place, settings, reached, uncaught }: Stage): Promise<Values> {
  const client = await peer.open(place)
  let lostAt: number | undefined
  const held = await client.hold?.('faults', TTL, () => {
    lostAt ??= moment()
  })
  await reached('held')
  let asked: boolean | undefined
  if (settings.block) {
    block(2 * TTL)
    asked = held?.isHeld?.()
  }
  await pause((settings.watch ?? WATCH) - (settings.block ? 2 * TTL : 0))
  return { lostAt, asked: asked === undefined ? undefined : Number(asked), uncaught: uncaught() }
}
