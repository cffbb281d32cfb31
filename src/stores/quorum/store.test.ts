import { expect, test } from 'vitest'
import { busy, claim, granted, ScriptedMember } from '../../../test/scripted-member.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { guaranteesOf } from '../redlock/guarantees.ts'
import { QuorumStore } from './store.ts'

const NODE_TIMEOUT = 50

test('P3: a try over split votes takes a few node timeouts, however long its ttl', async () => {
  const clock = new VirtualClock()
  const members = Array.from({ length: 3 }, (_, index) => new ScriptedMember(`node ${index}`))
  const [first, second, third] = members as [ScriptedMember, ScriptedMember, ScriptedMember]
  first.onVote = () => granted(1)
  second.onVote = () => busy('second')
  third.onVote = () => busy('third')
  const store = new QuorumStore(members, {
    kind: 'redlock of 3',
    guarantees: guaranteesOf(3, true, true),
    nodeTimeout: NODE_TIMEOUT,
    maxTtl: 60_000,
    acquireLimit: ttl => ttl / 3,
    drift: 0.01,
    environment: { clock, random: () => 0.5 },
  })
  let answer: unknown
  void store.acquire({ ...claim, ttl: 15_000 }, new AbortController().signal).then(result => (answer = result))
  await clock.advance(10 * NODE_TIMEOUT)
  expect(answer).toMatchObject({ held: false })
  const votes = first.asked.filter(verb => verb === 'vote')
  expect(votes.length).toBeGreaterThan(1)
  expect(first.asked.filter(verb => verb === 'concede')).toHaveLength(votes.length)
})
