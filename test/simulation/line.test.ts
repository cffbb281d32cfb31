import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Claim } from '../../src/contract/store.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { VirtualClock } from '../../src/testing/clock.ts'
import { look } from '../support.ts'
import { Reference } from './reference.ts'

const { signal } = new AbortController()

const who = fc.integer({ min: 0, max: 5 })
const name = fc.constantFrom('a', 'a', 'a', 'b')
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ acquire: who, name, queue: fc.boolean(), ttl: fc.constantFrom(50, 400, 3_000) }),
  },
  { weight: 1, arbitrary: fc.record({ renew: who, name, ttl: fc.constantFrom(50, 400, 3_000) }) },
  { weight: 3, arbitrary: fc.record({ release: who, name }) },
  { weight: 1, arbitrary: fc.record({ break: name, token: fc.constantFrom('any', 'seen', 'older') }) },
  { weight: 3, arbitrary: fc.record({ wait: fc.constantFrom(1, 40, 99, 100, 101, 350, 1_000) }) },
)

test('the memory store follows the rules of the queue for any order of requests', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const clock = new VirtualClock()
      const store = memory({ clock })
      const reference = new Reference(what => expect.fail(what))
      // After its release, each acquires again with a new id.
      const wishes = Array.from({ length: 6 }, () => 0)
      const claim = (index: number, more: Partial<Claim>): Claim => {
        const id = `${index}.${wishes[index]}`
        return { name: 'a', id: `${more.name} ${id}`, owner: id, ttl: 400, note: '', queue: false, ...more }
      }
      for (const each of steps) {
        const now = clock.now()
        if ('wait' in each) await clock.block(each.wait)
        else if ('break' in each) {
          const [{ token: seen = 0n } = {}] = await look(store, { name: each.break })
          const token = { any: undefined, seen, older: seen - 1n }[each.token]
          reference.broken(each.break, token, await store.break(each.break, { by: 'test', token }, signal), now)
        } else if ('acquire' in each) {
          const { acquire, ...rest } = each
          const asked = claim(acquire, rest)
          reference.acquired(asked, await store.acquire(asked, signal), now)
        } else if ('renew' in each) {
          const { renew, ...rest } = each
          const asked = claim(renew, rest)
          reference.renewed(asked, await store.renew(asked, signal), now)
        } else {
          const key = claim(each.release, { name: each.name })
          const answer = await store.release(key, signal)
          reference.released(key, answer, now)
          if (answer === 'gone') wishes[each.release] = (wishes[each.release] ?? 0) + 1
        }
        await seesTheSame()
      }

      async function seesTheSame(): Promise<void> {
        for (const looked of ['a', 'b']) {
          const records = await look(store, { name: looked })
          const seen = records.map(({ state, owner, position }) => [state, owner, position])
          expect(seen).toEqual(reference.records(looked, clock.now()))
        }
      }
    }),
    { numRuns: 500 },
  )
})
