import type { StoreLocks } from '../../src/create-locks.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'

/** A process and its locks, which may be closed and opened again. */
export class Process {
  readonly machine: Machine
  /** Jobs that have not ended. */
  working = 0
  locks: StoreLocks
  readonly #open: () => StoreLocks

  constructor(machine: Machine, open: () => StoreLocks) {
    this.machine = machine
    this.#open = open
    this.locks = open()
  }

  reopen(grace: number): void {
    void this.locks.close({ grace })
    this.locks = this.#open()
  }
}

export interface Population {
  readonly processes: Process[]
  readonly random: Random
  readonly counts: { stops: number; crashes: number }
  /** Adds a process. */
  start(): void
}

/** Pauses a process, replaces a dead one, or closes and reopens its locks. */
export function disturbOne({ processes, random, counts, start }: Population): void {
  const process = random.pick(processes)
  const { machine } = process
  if (random.chance(0.75)) {
    counts.stops += 1
    machine.stop(random.pick([30, 150, 600, 2_000]) * random.between(0.5, 1.5))
  } else if (random.chance(0.5)) {
    counts.crashes += 1
    machine.crash()
    processes.splice(processes.indexOf(process), 1)
    start()
  } else if (machine.state === 'running') process.reopen(random.pick([0, 50, 1_000]))
}
