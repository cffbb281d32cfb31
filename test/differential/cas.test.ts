import { memoryRegisterHarness, sqlRegisterHarness } from '../harnesses/cas.ts'
import { differ } from './differ.ts'

differ(sqlRegisterHarness())

// Without the age of a record, a client learns when a lease ends only by what it saw, so one client is asked as all three.
const { open, ...harness } = memoryRegisterHarness()
const stores: ReturnType<typeof open>[] = []
differ({
  ...harness,
  open() {
    if (stores.length % 3 === 0) stores.push(open())
    else stores.push(stores.at(-1) as ReturnType<typeof open>)
    return stores.at(-1) as ReturnType<typeof open>
  },
})
