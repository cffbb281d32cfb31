import type { Worker } from '../launch.ts'
import { Loops } from '../loops.ts'
import { pause } from '../peer.ts'
import { ownCpu, rough, rounded, type Scenario, serverCpu, type Trial } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { Votes } from '../votes.ts'
import type { Stage, Values } from '../worker.ts'

/** Loops begin together, with cold caches, because others had their turn. So long they are not measured. Milliseconds. */
const START = 500

export const scenario: Scenario = {
  title: 'Acquire and release without contention',
  about:
    'For each library one process with N loops, each with names of its own. All over one kind of server take turns of two ' +
    'seconds, in one order and then in the other, so the speed of the machine is the same for all. Client CPU is that of ' +
    'the whole process, server CPU that of Redis. A warm-up comes first, because code that seldom runs is compiled late.',
  rounds: 3,
  variants: isQuick =>
    [1, 64].map(loops => ({
      name: `${loops} at a time`,
      // In the first 5 s V8 compiles, and moves what the start created: 64 at a time, the 99th percentile of the second
      // second is 5.6 ms, and that of the sixth 2.4. A full collection right before would do the same once more.
      settings: isQuick ? { loops, turn: 150, warm: 1, turns: 2 } : { loops, turn: 1_500, warm: 3, turns: 3 },
    })),
  takesPart: peer => peer.can.includes('pairs'),
  async measureInTurns(trials) {
    const participants = trials.map(trial => new Participant(trial))
    const { warm = 0, turns = 0 } = trials[0]?.settings ?? {}
    for (let turn = -warm; turn < turns; turn += 1)
      for (const each of turn % 2 === 0 ? participants : participants.toReversed()) await each.take(turn)
    return Promise.allSettled(participants.map(each => each.values()))
  },
  columns: [
    { title: 'pairs/s', value: 'rate', isRatio: true, format: rounded },
    { title: 'p50 ms', value: 'p50', format: rough },
    { title: 'p99 ms', value: 'p99', isRatio: true, format: rough },
    { title: 'client CPU us/pair', value: 'clientCpu', isRatio: true, format: rough },
    { title: 'server CPU us/pair', value: 'serverCpu', format: rough },
  ],
}

/** What the driver sees of one library. */
class Participant {
  readonly #trial: Trial
  readonly #worker: Worker
  #serverCpu = 0

  constructor(trial: Trial) {
    this.#trial = trial
    this.#worker = trial.start('work')
  }

  /** From one step of the worker to the next. */
  async take(turn: number): Promise<void> {
    try {
      await this.#worker.reached(String(turn))
      const before = await serverCpu(this.#trial)
      this.#worker.go()
      await this.#worker.reached(String(turn + 1))
      if (turn >= 0) this.#serverCpu += (await serverCpu(this.#trial)) - before
    } catch {} // The values reject as well. What has failed takes no more turns.
  }

  async values(): Promise<Values> {
    this.#worker.go()
    const { all, ...values } = await this.#worker.values
    return { ...values, serverCpu: (this.#serverCpu * 1_000) / Number(all) }
  }
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { loops: count = 1, turn: time = 0, warm = 0, turns = 0 } = settings
  const client = await peer.open(place)
  const latencies: number[] = []
  let [all, elapsed, cpu] = [0, 0, 0]
  let votes = new Votes()
  for (let turn = -warm; turn < turns; turn += 1) {
    await reached(String(turn))
    if (turn === 0) [votes, latencies.length, all, elapsed, cpu] = [new Votes(), 0, 0, 0, 0] // warm by now
    const loops = new Loops(client, count)
    await pause(START)
    all += loops.take().length
    const [started, used] = [performance.now(), ownCpu()]
    await Promise.race([pause(time), loops.ended])
    elapsed += performance.now() - started
    cpu += ownCpu() - used
    for (const latency of loops.take()) latencies.push(latency)
    loops.stop()
    await loops.ended
    all += loops.take().length
  }
  await reached(String(turns))
  await client.close()
  const pairs = latencies.length
  const { won, wonAtOnce } = votes
  return {
    pairs,
    all: all + pairs,
    rate: (pairs * 1_000) / elapsed,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    clientCpu: (cpu * 1_000) / pairs,
    wonAtOnce: won > 0 ? (100 * wonAtOnce) / won : undefined,
  }
}
