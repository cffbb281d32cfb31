import { pause } from '../peer.ts'
import { rough, rounded, type Scenario, whole } from '../scenario.ts'
import { Turns } from '../turns.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000

/** Tasks that compete where somebody waits. */
const CROWD = 32

/** For comparison: as many tasks that have a lease of their own each. */
const LEASES = [4, 100]

export const scenario: Scenario = {
  title: 'Permits of one semaphore',
  about:
    'One process. Each task acquires one permit, releases it and returns at once. Without waiting, there are as many tasks ' +
    "as permits; otherwise there are 32 tasks. The wait is from a task's call to its permit. In " +
    '"plain leases" each task has a name of its own. Where tasks work, each works for 1 ms before it releases. A warm-up ' +
    'comes first, because code that seldom runs is compiled late.',
  rounds: 3,
  variants(isQuick) {
    const times = isQuick ? { warm: 300, time: 500 } : { warm: 6_000, time: 2_500 }
    const isOwn = (name: string): boolean => /^(holdfast|baseline)/.test(name)
    const permits = (isQuick ? [4] : [1, 4, 16, 100]).flatMap(limit =>
      [limit, CROWD]
        .filter(tasks => tasks >= limit)
        .map(tasks => ({
          name: `limit ${limit}, ${tasks === limit ? 'nobody waits' : `${tasks} tasks`}`,
          settings: { limit, tasks, ...times },
        })),
    )
    const working = [1, 4].map(limit => ({
      name: `limit ${limit}, ${CROWD} tasks that work`,
      settings: { limit, tasks: CROWD, busy: 1, ...times },
      takesPart: isOwn,
    }))
    const leases = LEASES.map(tasks => ({
      name: `${tasks} plain leases`,
      settings: { limit: 0, tasks, ...times },
      takesPart: isOwn,
    }))
    return [...permits, ...working, ...leases]
  },
  takesPart: peer => peer.can.includes('permits'),
  measure: trial => trial.start('work').values,
  columns: [
    { title: 'permits/s', value: 'rate', format: rounded },
    { title: 'wait p50 ms', value: 'wait50', format: rough },
    { title: 'wait p99 ms', value: 'wait99', format: rough },
    { title: 'requests each', value: 'requests', format: rough },
    { title: 'client CPU us each', value: 'clientCpu', format: whole },
    { title: 'fairness (Jain)', value: 'fairness', format: value => value.toFixed(3) },
  ],
}

export async function work({ peer, place, settings }: Stage): Promise<Values> {
  const { limit = 1, tasks = 1, busy = 0, warm = 0, time = 0 } = settings
  const client = await peer.open(place)
  const turns = new Turns(tasks, busy, async task => {
    if (limit === 0) return client.acquire(`permits:${task}`, TTL)
    if (!client.permit) throw new Error(`${peer.label} has no permits`)
    return client.permit('permits', limit, TTL)
  })
  await pause(warm)
  const values = await turns.during(pause(time))
  turns.stop()
  return values
}
