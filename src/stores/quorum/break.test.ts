import { expect, test } from 'vitest'
import { never, quorumOf, type ScriptedMember } from '../../../test/scripted-member.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { breakLeases } from './break.ts'
import type { Broken, Sight } from './member.ts'

const free: Sight = { holder: undefined, queue: [] }
const raised: Broken = { hasEnded: false, isRaised: true, token: 0 }
const higher: Broken = { hasEnded: false, isRaised: false, token: 20 }

function heldBy(id: string, token: number): Sight {
  return { holder: { id, token, owner: id, note: '', revision: 0, remaining: 1_000 }, queue: [] }
}

/** What a break answers after nodes answered so, and what it asked each of them. No time passes. */
async function broken(
  sights: readonly (Sight | typeof never)[],
  answers: readonly (Broken | typeof never)[] = [],
  of?: bigint,
): Promise<[bigint | undefined, string[]]> {
  const [quorum, members] = quorumOf(sights.length, { clock: new VirtualClock(), random: () => 0 })
  for (const [index, sight] of sights.entries()) {
    const member = members[index] as ScriptedMember
    const answer = answers[index]
    member.onLook = () => (typeof sight === 'function' ? sight<Sight>() : sight)
    if (answer) member.onBreak = () => (typeof answer === 'function' ? answer<Broken>() : answer)
  }
  const token = await breakLeases(quorum, 'a', of, () => {})
  return [token, members.map(({ asked }) => asked.join(', '))]
}

test('a lease is broken without waiting for a node that does not answer, and no waiters are read', async () => {
  const answer = await broken([never, heldBy('x', 7), heldBy('x', 6)], [never])
  expect(answer).toEqual([8n, Array(3).fill('look, break x,7 8')])
})

test('nothing is sent if no claim can have a majority', async () => {
  expect(await broken([heldBy('x', 7), free, heldBy('y', 6)])).toEqual([undefined, Array(3).fill('look')])
  expect(await broken([never, free, free])).toEqual([undefined, Array(3).fill('look')])
  expect(await broken([heldBy('x', 7), heldBy('x', 7), free], [], 6n)).toEqual([undefined, Array(3).fill('look')])
})

test('only the claim that has a majority is named', async () => {
  const [token, asked] = await broken([heldBy('x', 7), heldBy('x', 7), heldBy('y', 9)], [], 7n)
  expect(token).toBe(8n)
  expect(asked).toEqual(Array(3).fill('look, break x,7 8'))
})

test('the answer is undefined if no vote ended, once a majority outranks the votes that were seen', async () => {
  const [token] = await broken([heldBy('x', 7), heldBy('x', 7), free], [raised, raised, raised])
  expect(token).toBeUndefined()
})

test('a node that already had the token is outranked in a second round, which may fail', async () => {
  const breaking = broken([heldBy('x', 7), heldBy('x', 7), free], [raised, higher, higher])
  await expect(breaking).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})
