import { expect, test } from 'vitest'
import { claim, never, quorumOf, type ScriptedMember } from '../../../test/scripted-member.ts'
import type { Renewal } from './member.ts'
import { renew } from './renewal.ts'

const held: Renewal = { state: 'held', token: 7 }
const free: Renewal = { state: 'free', token: 0 }
const lost: Renewal = { state: 'lost', token: 0 }
const unreached = (): never => {
  throw new Error('unreached')
}
const holder = { ...claim, token: 7n }

/** What nodes answer a renewal; and when they are asked to restore it, that they hold. */
function script(members: ScriptedMember[], answers: readonly (Renewal | typeof never)[]): void {
  for (const [index, answer] of answers.entries())
    (members[index] as ScriptedMember).onRenew = restore =>
      restore ? held : typeof answer === 'function' ? answer<Renewal>() : answer
}

test('a majority renews, and other nodes are not waited for', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [held, held, held, never, never])
  expect(await renew(quorum, holder, 1)).toBe(7)
})

test('nodes that lost the vote get it again once a majority holds', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [free, held, held, held, lost])
  expect(await renew(quorum, holder, 1)).toBe(7)
  await expect
    .poll(() => members.map(({ asked }) => asked.join(' ')))
    .toEqual(['renew restore', 'renew', 'renew', 'renew', 'renew'])
})

test('a majority that was lost is restored if one node still holds and no other claim got a vote since', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [held, free, free, lost, lost])
  expect(await renew(quorum, holder, 1)).toBe(7)
})

test('nodes that lost the vote may answer first', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [free, free, free, held, never])
  expect(await renew(quorum, holder, 1)).toBe(7)
})

test('a lease that no node has any more has expired', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [free, free, free])
  expect(await renew(quorum, holder, 1)).toBeUndefined()
  expect(members.flatMap(({ asked }) => asked)).not.toContain('restore')
})

test('a lease is lost when a majority is lost, whatever the other nodes answer', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [held, held, lost, lost, lost])
  expect(await renew(quorum, holder, 1)).toBeUndefined()
})

test('a minority is unknown', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [held, never, never])
  for (const member of members) await quorum.nodes[members.indexOf(member)]?.ask(each => each.release(claim))
  await expect(renew(quorum, holder, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('R6: a node that does not answer, or does not count yet, may have the vote from which the others get it', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [free, unreached, free])
  await expect(renew(quorum, holder, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  script(members, [free, held, free])
  ;(members[1] as ScriptedMember).votesIn = 1_000
  await expect(renew(quorum, holder, 2)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  script(members, [lost, unreached, lost])
  expect(await renew(quorum, holder, 3)).toBeUndefined()
})

test('quarantined nodes do not count, and get the lease again', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [held, held, free])
  ;(members[2] as ScriptedMember).votesIn = 1_000
  expect(await renew(quorum, holder, 1)).toBe(7)
  await expect.poll(() => members[2]?.asked).toEqual(['renew', 'restore'])

  const [few, doubtful] = quorumOf(3)
  script(doubtful, [held, held, held])
  for (const member of doubtful.slice(1)) member.votesIn = 1_000
  await expect(renew(few, holder, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryAfter: 1_000 })
})
