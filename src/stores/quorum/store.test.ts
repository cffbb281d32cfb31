import { describe, expect, test } from 'vitest'
import { busy, claim, granted, never, ScriptedMember } from '../../../test/scripted-member.ts'
import { LeaseError } from '../../contract/errors.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { guaranteesOf } from '../redlock/guarantees.ts'
import type { Renewal } from './member.ts'
import { QuorumStore } from './store.ts'

const NODE_TIMEOUT = 50

function storeOf(members: readonly ScriptedMember[], clock: VirtualClock): QuorumStore {
  return new QuorumStore(members, {
    kind: 'redlock of 3',
    guarantees: guaranteesOf(3, true, true),
    nodeTimeout: NODE_TIMEOUT,
    maxTtl: 60_000,
    drift: 0.01,
    environment: { clock, random: () => 0.5 },
  })
}

test('P3: an attempt with split votes takes a few node timeouts, however long its ttl', async () => {
  const clock = new VirtualClock()
  const members = Array.from({ length: 3 }, (_, index) => new ScriptedMember(`node ${index}`))
  const [first, second, third] = members as [ScriptedMember, ScriptedMember, ScriptedMember]
  first.onVote = () => granted(1)
  second.onVote = () => busy('second')
  third.onVote = () => busy('third')
  const store = storeOf(members, clock)
  let answer: unknown
  void store.acquire({ ...claim, ttl: 15_000 }, new AbortController().signal).then(result => (answer = result))
  await clock.advance(10 * NODE_TIMEOUT)
  expect(answer).toMatchObject({ held: false })
  const votes = first.asked.filter(verb => verb === 'vote')
  expect(votes.length).toBeGreaterThan(1)
  expect(first.asked.filter(verb => verb === 'concede')).toHaveLength(votes.length)
})

test('S9: a name that every node refuses fails at once, also as the first request', async () => {
  const clock = new VirtualClock()
  const refusal = new LeaseError('STORE_UNAVAILABLE', 'the key is of another type', { retryable: false })
  const members = Array.from({ length: 3 }, (_, index) => new ScriptedMember(`node ${index}`))
  for (const member of members) {
    member.onVote = () => Promise.reject(refusal)
    member.isAnswer = error => error === refusal
  }
  let failure: unknown
  storeOf(members, clock)
    .acquire(claim, new AbortController().signal)
    .catch(error => (failure = error))
  await clock.advance(1)
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
})

test('a claim that is aborted once it has won is left to its release, which wakes the next waiter', async () => {
  const clock = new VirtualClock()
  const controller = new AbortController()
  const members = Array.from({ length: 3 }, (_, index) => new ScriptedMember(`node ${index}`))
  for (const member of members)
    member.onVote = async () => {
      controller.abort()
      return granted(1)
    }
  const failure = storeOf(members, clock)
    .acquire(claim, controller.signal)
    .catch(error => error)
  await clock.advance(10)
  expect(await failure).toBe(controller.signal.reason)
  expect(members.flatMap(({ asked }) => asked)).toEqual(['vote', 'vote', 'vote'])
})

describe('a renewal that finds no majority', () => {
  const signal = new AbortController().signal
  const held: Renewal = { state: 'held', token: 7 }
  /** Another claim has the votes of the first and third node. */
  const scripted = (): ScriptedMember[] =>
    Array.from({ length: 3 }, (_, index) => {
      const member = new ScriptedMember(`node ${index}`)
      member.onRenew = () => (index === 1 ? held : { state: 'lost', token: 0 })
      return member
    })
  const verbs = (members: readonly ScriptedMember[]): string[] => members.flatMap(({ asked }) => asked)

  test('ends what a minority still holds', async () => {
    const [clock, members] = [new VirtualClock(), scripted()]
    const answer = storeOf(members, clock).renew({ ...claim, token: 7n }, signal)
    await clock.advance(2_000)
    expect(await answer).toBeUndefined()
    expect(verbs(members).filter(verb => verb === 'release')).toHaveLength(3)
  })

  test('R3, R6: ends and denies nothing once a later one was sent', async () => {
    const [clock, members] = [new VirtualClock(), scripted()]
    const store = storeOf(members, clock)
    const early = store.renew({ ...claim, token: 7n }, signal).catch(error => error)
    for (const member of members) member.onRenew = () => held
    expect(await store.renew({ ...claim, token: 7n }, signal)).toMatchObject({ token: 7n })
    await clock.advance(2_000)
    expect(await early).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(verbs(members)).not.toContain('release')
  })

  test('R3: ends nothing after it was given up', async () => {
    const [clock, members, controller] = [new VirtualClock(), scripted(), new AbortController()]
    const answer = storeOf(members, clock)
      .renew({ ...claim, token: 7n }, controller.signal)
      .catch(error => error)
    controller.abort()
    await clock.advance(2_000)
    expect(await answer).toBe(controller.signal.reason)
    expect(verbs(members)).not.toContain('release')
  })
})

test('R11: a listing shows that a node serves again, although nothing else asks it', async () => {
  const clock = new VirtualClock()
  const members = Array.from({ length: 3 }, (_, index) => new ScriptedMember(`node ${index}`))
  const [first] = members as [ScriptedMember]
  const store = storeOf(members, clock)
  const { signal } = new AbortController()
  first.onRelease = never
  await store.release(claim, signal)
  await clock.advance(2_000)
  const states = async (): Promise<string[]> =>
    (await Array.fromAsync(store.inspect({ prefix: '' }, signal))).map(({ state }) => state)
  expect(await states()).toEqual(['serving', 'serving', 'serving'])
})
