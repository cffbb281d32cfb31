import { memory } from '../../src/stores/memory/index.ts'
import { VirtualClock } from '../../src/testing/clock.ts'
import type { Rig } from './play.ts'

/** Moves only while a history waits, and can be set back. */
class SteppedClock extends VirtualClock {
  #behind = 0

  override now(): number {
    return super.now() - this.#behind
  }

  setBack(ms: number): void {
    this.#behind += ms
  }
}

/** The store in memory, with a clock of its own. `open`: with other rules. */
export function memoryRig(open: typeof memory = memory): Rig {
  const clock = new SteppedClock()
  return {
    clients: [open({ clock })],
    brief: 400,
    precision: 0,
    latestWake: 50,
    now: () => clock.now(),
    sleep: ms => clock.advance(ms),
    setBack: ms => clock.setBack(ms),
    lasts: ms => ms,
    ends: ms => ms,
  }
}
