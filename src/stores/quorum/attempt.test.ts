import { expect, test } from 'vitest'
import { busy, claim, granted, never, quorumOf, type ScriptedMember } from '../../../test/scripted-member.ts'
import { subscribe } from '../../contract/events.ts'
import type { Busy } from '../../contract/store.ts'
import { Attempt, type Result } from './attempt.ts'

function attempt(quorum: ReturnType<typeof quorumOf>[0]): Promise<Result> {
  return new Attempt(quorum, claim, 1).run()
}

function script(members: ScriptedMember[], votes: readonly ScriptedMember['onVote'][]): void {
  for (const [index, vote] of votes.entries()) (members[index] as ScriptedMember).onVote = vote
}

const asked = (members: readonly ScriptedMember[]): string[] => members.map(({ asked }) => asked.join(' '))

test('a majority with the same token wins in one round trip, and other nodes are not waited for', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [() => granted(7), () => granted(7), () => granted(7), never, never])
  expect(await attempt(quorum)).toEqual({ kind: 'won', token: 7 })
  expect(asked(members)).toEqual(Array(5).fill('vote'))
})

test('the highest token is written back, only to those whose votes were counted', async () => {
  const [quorum, members] = quorumOf(5)
  script(members, [() => granted(7), () => granted(9), () => granted(8), never, never])
  const rounds: number[] = []
  const stop = subscribe('votes_counted', event => rounds.push(event.rounds))
  expect(await attempt(quorum)).toEqual({ kind: 'won', token: 9 })
  stop()
  expect(rounds).toEqual([2])
  expect(asked(members)).toEqual(['vote commit 7 9', 'vote commit 9 9', 'vote commit 8 9', 'vote', 'vote'])
})

test('votes are conceded if the token cannot be written back to a majority', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [() => granted(7), () => granted(9), never])
  ;(members[0] as ScriptedMember).onCommit = () => false
  expect(await attempt(quorum)).toMatchObject({ kind: 'tie', busy: { held: false } })
  expect(asked(members).slice(0, 2)).toEqual(['vote commit 7 9 concede', 'vote commit 9 9 concede'])
})

test('a name that a majority gave to another is busy until enough of its votes lapse', async () => {
  const [quorum, members] = quorumOf(5)
  const other = (remaining: number) => () => busy('other', remaining)
  script(members, [() => busy('third', 100), () => granted(5), other(400), other(300), other(500)])
  const result = await attempt(quorum)
  expect(result).toMatchObject({ kind: 'busy', busy: { held: false, holder: { owner: 'other', token: 9n } } })
  // One is free, one is after 100 ms, and with the one after 300 ms they are three.
  expect(result).toMatchObject({ busy: { retryAfter: 300 } })
  expect(asked(members)).toEqual(['vote', 'vote concede', 'vote', 'vote', 'vote'])
})

test('without a majority for any claim it is a tie, which is retried after a random pause', async () => {
  const [quorum, members] = quorumOf(4)
  script(members, [() => granted(5), () => granted(5), () => busy('other'), () => busy('other')])
  const result = await attempt(quorum)
  expect(result.kind).toBe('tie')
  const { retryAfter } = (result as { busy: Busy }).busy
  expect(retryAfter).toBeGreaterThanOrEqual(50)
  expect(retryAfter).toBeLessThanOrEqual(150)
})

test('a vote that comes too late, or whose answer is lost, is conceded', async () => {
  const [quorum, members] = quorumOf(3)
  const { promise, resolve } = Promise.withResolvers<ReturnType<typeof granted>>()
  script(members, [() => busy('other'), () => busy('other'), () => promise])
  expect((await attempt(quorum)).kind).toBe('busy')
  resolve(granted(1))
  await expect.poll(() => members[2]?.asked).toEqual(['vote', 'concede'])

  const [second, silent] = quorumOf(3)
  script(silent, [() => busy('other'), () => busy('other'), never])
  ;(silent[2] as ScriptedMember).onVote = async () => {
    throw new Error('reset')
  }
  await attempt(second)
  // Its outcome is known: it was not sent, or the driver says that it failed.
  expect(silent[2]?.asked).toEqual(['vote'])
})

test('too few answers that count reject with the reason of each node', async () => {
  const [quorum, members] = quorumOf(3)
  script(members, [() => granted(5), () => undefined, () => Promise.reject(new Error('refused'))])
  ;(members[1] as ScriptedMember).votesIn = 4_000
  const result = await attempt(quorum)
  expect(result).toMatchObject({
    kind: 'unavailable',
    error: { code: 'STORE_UNAVAILABLE', retryAfter: 100, cause: { errors: [{}, {}] } }, // when node 2 is probed
  })
  const { message } = (result as Extract<Result, { kind: 'unavailable' }>).error
  expect(message).toMatch(/no majority of the 3 nodes is available: .*node 2: .*refused; node 1: .*votes in 4 s/)
  expect(asked(members)).toEqual(['vote concede', 'vote', 'vote'])
})
