import { expect, test } from 'vitest'
import { claim, never, quorumOf, type ScriptedMember } from '../../../test/scripted-member.ts'
import type { Claim } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { annotate } from './annotation.ts'
import type { Renewal } from './member.ts'

const held: Renewal = { state: 'held', token: 7 }
const free: Renewal = { state: 'free', token: 0 }
const lost: Renewal = { state: 'lost', token: 0 }
const unreached = (): never => {
  throw new Error('unreached')
}

const holder = { ...claim, note: 'new', token: 7n }

/** In which no node is ever given up. */
const standing = { clock: new VirtualClock(), random: () => 0 }

/** What comes of it when nodes answer so. */
async function annotated(answers: readonly (Renewal | typeof never)[], asking: Claim = holder): Promise<boolean> {
  const [quorum, members] = quorumOf(answers.length, standing)
  for (const [index, answer] of answers.entries())
    (members[index] as ScriptedMember).onAnnotate = () => (typeof answer === 'function' ? answer<Renewal>() : answer)
  const answer = await annotate(quorum, asking, 5)
  for (const { asked } of members) expect(asked).toEqual(['annotate new 5'])
  return answer
}

test('a majority has the note, and other nodes are not waited for', async () => {
  expect(await annotated([never, held, held])).toBe(true)
  expect(await annotated([lost, free, held, held, held])).toBe(true)
})

test('the lease is lost when a majority is lost, or no node has it', async () => {
  expect(await annotated([lost, held, lost])).toBe(false)
  expect(await annotated([free, held, lost, lost, lost])).toBe(false)
  expect(await annotated([free, free, free])).toBe(false)
  expect(await annotated([free, held, free], { ...holder, token: undefined })).toBe(false)
})

test('a minority is unknown', async () => {
  await expect(annotated([held, unreached, unreached])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(annotated([lost, held, unreached])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('R6: a node that does not answer may have the vote, from which a renewal restores the lease', async () => {
  const unanswered = annotated([free, unreached, free])
  await expect(unanswered).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(await annotated([lost, unreached, lost])).toBe(false)
  expect(await annotated([free, unreached, free], { ...holder, token: undefined })).toBe(false)
})

test('a lease that a renewal may yet restore is not lost', async () => {
  await expect(annotated([free, held, free])).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    message: expect.stringMatching(/node 0: it has forgotten the lease, which .*; node 2: it has forgotten/),
  })
})

test('quarantined nodes do not count', async () => {
  const [quorum, members] = quorumOf(3)
  for (const member of members.slice(1)) member.votesIn = 1_000
  await expect(annotate(quorum, holder, 5)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryAfter: 1_000,
  })
})
