import { numberOf, rough, rounded, type Scenario } from '../scenario.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000
/** So many names are taken at a time. */
const AT_ONCE = 64

export const scenario: Scenario = {
  title: 'Names that are used once',
  about:
    "Each name is acquired and released once, 64 at a time, as with one lease per order. Bytes are the growth of Redis's " +
    'memory per name.',
  rounds: 1,
  variants: isQuick =>
    (isQuick ? [10_000] : [10_000, 100_000, 1_000_000]).map(names => ({
      name: `${names.toLocaleString('en-US')} names`,
      settings: { names },
      takesPart: peer => names < 1_000_000 || peer === 'floor' || peer === 'holdfast',
    })),
  takesPart: peer => peer.over === 'redis' && peer.can.includes('pairs'),
  async measure(trial) {
    const { names = 1 } = trial.settings
    const [redis] = trial.servers
    const inUse = async (): Promise<number> => Number((await redis.info('memory')).used_memory)
    const worker = trial.start('work')
    await worker.reached('ready')
    const before = await inUse()
    worker.go()
    await worker.reached('done')
    const after = await inUse()
    worker.go()
    const values = await worker.values
    return { bytes: (after - before) / names, rate: (names * 1_000) / numberOf(values, 'elapsed') }
  },
  columns: [
    { title: 'bytes kept of a name', value: 'bytes', format: rough },
    { title: 'pairs/s', value: 'rate', isRatio: true, format: rounded },
  ],
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { names = 0 } = settings
  const client = await peer.open(place)
  const pair = async (name: string): Promise<void> => {
    const release = await client.acquire(name, TTL)
    await release()
  }
  // Scripts and buffers take memory as well.
  await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => pair(`first:${index}`)))
  await reached('ready')
  let next = 0
  const loop = async (): Promise<void> => {
    while (next < names) await pair(`order:${next++}`)
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: AT_ONCE }, loop))
  const elapsed = performance.now() - started
  await reached('done')
  await client.close()
  return { elapsed }
}
