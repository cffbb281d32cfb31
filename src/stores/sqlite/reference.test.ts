import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { array, asyncProperty, assert as check, constantFrom, nat, record } from 'fast-check'
import { expect, test } from 'vitest'
import { look } from '../../../test/support.ts'
import { type Claim, LARGEST_LIMIT, type Store } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, systemClock } from '../../contract/time.ts'
import { memory } from '../memory/index.ts'
import { sqlite } from './index.ts'

interface Step {
  readonly deed: 'acquire' | 'renew' | 'release' | 'break' | 'inspect' | 'wait'
  readonly name: string
  readonly claim: number
  readonly duration: number
}

const START = Date.UTC(2025, 0)
const never = new AbortController().signal
let elapsed = 0
const clock: Clock = { now: () => elapsed, wall: () => START + elapsed, after: systemClock().after }

/** Half of the claims queue. Nothing lapses: when a position is written again differs. */
function claimOf({ name, claim }: Step): Claim {
  const queue = claim % 2 === 0
  const terms = [{}, { limit: 3 }, { limit: 3, units: 2 }, { limit: LARGEST_LIMIT }][claim >> 1]
  return {
    name,
    id: `${name} ${claim}`,
    owner: `owner ${claim}`,
    ttl: queue ? 1_000_000 : 300,
    note: '',
    queue,
    ...terms,
  }
}

async function answer(store: Store, step: Step): Promise<unknown> {
  const { deed, name, claim, duration } = step
  if (deed === 'acquire') {
    const answer = await store.acquire(claimOf(step), never)
    return answer.held ? answer : { ...answer, holder: answer.holder?.name } // any of several
  }
  if (deed === 'renew') return store.renew(claimOf(step), never)
  if (deed === 'release') return store.release(claimOf(step), never)
  if (deed === 'break') return store.break(name, { by: 'somebody', slot: claim > 3 ? claim - 4 : undefined }, never)
  const records: object[] = []
  for (const { remaining: _, ...record } of await look(store, { prefix: '' })) records.push(record)
  return deed === 'inspect' ? records : duration
}

const step = record({
  deed: constantFrom<Step['deed']>(
    'acquire',
    'acquire',
    'acquire',
    'renew',
    'release',
    'release',
    'break',
    'inspect',
    'wait',
  ),
  name: constantFrom('a', 'b'),
  claim: nat(7),
  duration: constantFrom(1, 50, 100, 300, 1_000),
})

test('it answers as memory does, whatever the order of requests', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  let runs = 0
  const property = asyncProperty(array(step, { minLength: 20, maxLength: 80 }), async steps => {
    runs += 1
    elapsed = 0
    const store = sqlite(join(folder, `${runs}.db`), { clock })
    const reference = memory({ clock })
    for (const given of steps) {
      if (given.deed === 'wait' && elapsed + given.duration < LONGEST_REQUEST) elapsed += given.duration
      expect(await answer(store, given)).toEqual(await answer(reference, given))
    }
    await store[Symbol.asyncDispose]()
  })
  await check(property, { numRuns: 60 })
  rmSync(folder, { recursive: true })
}, 60_000)
