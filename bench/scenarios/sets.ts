import { pause } from '../peer.ts'
import { rough, rounded, type Scenario, whole } from '../scenario.ts'
import { Turns } from '../turns.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000

/** Each task that does not compete takes its own names in turn. */
const OWN_NAMES = 64

export const scenario: Scenario = {
  title: 'Two names at once',
  about:
    'One process. Each task acquires two names together, releases them and returns at once. Without waiting, each task has ' +
    "names of its own; otherwise 16 tasks acquire two neighbors of 8 names. The wait is from a task's call to both " +
    'names.',
  rounds: 3,
  variants: isQuick =>
    [
      { name: '1 at a time, nobody waits', tasks: 1, names: 0 },
      { name: '16 at a time, nobody waits', tasks: 16, names: 0 },
      { name: '16 tasks, 8 names', tasks: 16, names: 8 },
    ]
      .filter(({ tasks, names }) => !isQuick || tasks === 1 || names > 0)
      .map(({ name, ...settings }) => ({
        name,
        settings: { ...settings, warm: isQuick ? 300 : 6_000, time: isQuick ? 500 : 2_500 },
      })),
  takesPart: peer => peer.can.includes('sets'),
  measure: trial => trial.start('work').values,
  columns: [
    { title: 'sets/s', value: 'rate', format: rounded },
    { title: 'wait p50 ms', value: 'wait50', format: rough },
    { title: 'wait p99 ms', value: 'wait99', format: rough },
    { title: 'requests each', value: 'requests', format: rough },
    { title: 'client CPU us each', value: 'clientCpu', format: whole },
    { title: 'fairness (Jain)', value: 'fairness', format: value => value.toFixed(3) },
  ],
}

export async function work({ peer, place, settings }: Stage): Promise<Values> {
  const { tasks = 1, names: shared = 0, warm = 0, time = 0 } = settings
  const client = await peer.open(place)
  const namesOf = (task: number, turn: number): [string, string] => {
    if (shared === 0) return [`sets:${task}:${turn % OWN_NAMES}:a`, `sets:${task}:${turn % OWN_NAMES}:b`]
    const first = (task + turn) % shared
    return [`sets:${first}`, `sets:${(first + 1) % shared}`]
  }
  const turns = new Turns(tasks, 0, async (task, turn) => {
    if (!client.both) throw new Error(`${peer.label} acquires one name at a time`)
    return client.both(namesOf(task, turn), TTL)
  })
  await pause(warm)
  const values = await turns.during(pause(time))
  turns.stop()
  return values
}
