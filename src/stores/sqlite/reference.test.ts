import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { array, asyncProperty, assert as check, constantFrom, nat, record } from 'fast-check'
import { expect, test } from 'vitest'
import { look } from '../../../test/support.ts'
import type { Claim, Store } from '../../contract/store.ts'
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

/**
 * Half of the claims queue. Their ttl is so long that no place lapses, since when one is written anew differs; and no
 * tombstone becomes old, since memory keeps them for longer.
 */
function claimOf({ name, claim }: Step): Claim {
  const queue = claim % 2 === 0
  return { name, id: `${name} ${claim}`, owner: `owner ${claim}`, ttl: queue ? 1_000_000 : 300, note: '', queue }
}

async function answer(store: Store, step: Step): Promise<unknown> {
  const { deed, name, duration } = step
  if (deed === 'acquire') return store.acquire(claimOf(step), never)
  if (deed === 'renew') return store.renew(claimOf(step), never)
  if (deed === 'release') return store.release(claimOf(step), never)
  if (deed === 'break') return store.break(name, { by: 'somebody' }, never)
  const records: object[] = []
  for (const { state, owner, position, token } of await look(store, { prefix: '' }))
    records.push({ state, owner, position, token })
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
  claim: nat(5),
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
