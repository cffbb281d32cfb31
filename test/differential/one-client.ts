import type { StoreHarness } from '../harnesses/harness.ts'
import type { Rig } from './play.ts'

/** Without the age of a record, a client learns when a lease ends only by what it saw, so one client is asked as all three. */
export function asOneClient(harness: StoreHarness): StoreHarness {
  const { open } = harness
  const stores: ReturnType<typeof open>[] = []
  return {
    ...harness,
    open() {
      stores.push(stores.length % 3 === 0 ? open() : (stores.at(-1) as ReturnType<typeof open>))
      return stores.at(-1) as ReturnType<typeof open>
    },
  }
}

/** What the differential test does not compare of such an engine. */
export const UNAGED: Partial<Rig> = {
  // A write whose answer was lost is dated from the next read, as one of another process is.
  countsFromSight: true,
}
