import type { ShiftedClock } from '../../lab/servers/clock.ts'
import type { Store } from '../../src/contract/store.ts'
import { deaths, jumps, network, type Servers } from './faults.ts'
import type { StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'
import type { Stack } from './stack.ts'

/** A system with registers: how a harness starts it and connects to it. */
interface System<Started extends Servers> extends Omit<StoreHarness, 'open' | 'faults' | 'end'> {
  start(stack: Stack): Promise<Started>
  /** A new store. `ports`: local ports that lead to the servers, in their order. @default it connects to the servers */
  connect(started: Started, stack: Stack, ports?: readonly number[]): Store
}

/** The harness of a register: its store, and the faults of its servers and their network. */
export function registerHarness<Started extends Servers & { readonly clock?: ShiftedClock }>(
  system: System<Started>,
): StoreHarness {
  const { start, connect, ...harness } = system
  const { lacks } = harness
  const started = new Lazy(start)
  return {
    ...harness,
    lacks: { ...lacks, final: 'a late renewal revives a lease if nothing was written for its name since' },
    open: async () => connect(await started.value, started.stack),
    faults: {
      ...network(started, (ports, stack, all) => connect(all, stack, ports)),
      ...deaths(started),
      ...(lacks?.jump === undefined && jumps(started as Lazy<Started & { readonly clock: ShiftedClock }>)),
    },
    end: () => started.end(),
  }
}
