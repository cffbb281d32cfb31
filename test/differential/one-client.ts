import type { StoreHarness } from '../harnesses/harness.ts'

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
