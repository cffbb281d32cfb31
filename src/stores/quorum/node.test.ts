import { expect, test } from 'vitest'
import { claim, never, ScriptedMember } from '../../../test/scripted-member.ts'
import { LeaseError } from '../../contract/errors.ts'
import { subscribe } from '../../contract/events.ts'
import { VirtualClock } from '../../testing/clock.ts'
import type { Answer, Member } from './member.ts'
import { Node } from './node.ts'

function setUp(): { clock: VirtualClock; member: ScriptedMember; node: Node } {
  const clock = new VirtualClock()
  const member = new ScriptedMember('a:6379')
  return { clock, member, node: new Node(member, clock, 50) }
}

const release = (member: Member): Promise<Answer<boolean>> => member.release(claim)

/** Why it failed. */
function failure(asked: Promise<unknown>): Promise<LeaseError> {
  return asked.then(
    () => expect.fail('it was answered'),
    error => error,
  )
}

test('a node is waited for while it connects, and from then on for its timeout', async () => {
  const { clock, member, node } = setUp()
  member.onRelease = never
  const first = failure(node.ask(release))
  await clock.advance(1_049)
  member.onRelease = () => true
  await clock.advance(1)
  expect(await first).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await clock.advance(100)
  await node.ask(release)

  member.onRelease = never
  const second = failure(node.ask(release))
  await clock.advance(50)
  expect(await second).toMatchObject({ message: 'no answer within 50 ms' })
})

test('a node that could not be reached is not waited for as long again, and serves whenever it answers', async () => {
  const { clock, member, node } = setUp()
  member.onRelease = never
  const first = failure(node.ask(release))
  await clock.advance(1_050)
  await first
  await clock.advance(100)
  const connected = Promise.withResolvers<boolean>()
  member.onRelease = () => connected.promise
  const probe = failure(node.ask(release))
  await clock.advance(50)
  expect(await probe).toMatchObject({ message: 'no answer within 50 ms' })
  connected.resolve(true)
  await clock.advance(1)
  expect(node.record).toEqual({ name: 'a:6379', state: 'serving' })
})

test('a node that answers one request after the other is not unresponsive, however long the last ones wait', async () => {
  const { clock, member, node } = setUp()
  await node.ask(release)
  const turns = Array.from({ length: 10 }, () => Promise.withResolvers<boolean>())
  const answers = turns.map(turn => {
    member.onRelease = () => turn.promise
    return node.ask(release)
  })
  for (const turn of turns) {
    await clock.advance(40)
    turn.resolve(true)
  }
  expect((await Promise.all(answers)).map(({ value }) => value)).toEqual(turns.map(() => true))
  expect(node.record.state).toBe('serving')
})

test('a request that a later one has overtaken is given up after the timeout, and the node serves', async () => {
  const { clock, member, node } = setUp()
  await node.ask(release)
  member.onRelease = never
  const lost = failure(node.ask(release))
  member.onRelease = () => true
  await clock.advance(40)
  await node.ask(release)
  await clock.advance(10)
  expect(await lost).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: 'no answer within 50 ms' })
  expect(node.record.state).toBe('serving')
  await node.ask(release)
})

test('a node that has answered a later request does not fail when an old one is rejected', async () => {
  const { clock, member, node } = setUp()
  await node.ask(release)
  const lost = Promise.withResolvers<boolean>()
  member.onRelease = () => lost.promise
  const silent = failure(node.ask(release))
  await clock.advance(150)
  await silent
  member.onRelease = () => true
  await node.ask(release)
  lost.reject(new LeaseError('OUTCOME_UNKNOWN', 'no answer within 5000 ms'))
  await clock.advance(0)
  expect(node.record.state).toBe('serving')
  await node.ask(release)
})

test('the late error of a node that has not answered since tells the reason', async () => {
  const { clock, member, node } = setUp()
  const replica = Promise.withResolvers<boolean>()
  member.onRelease = () => replica.promise
  const silent = failure(node.ask(release))
  await clock.advance(1_050)
  await silent
  replica.reject(new LeaseError('INVALID_ARGUMENT', 'it is a replica'))
  await clock.advance(0)
  expect(node.refusal).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('an unresponsive node is probed now and then, and all other requests fail at once', async () => {
  const { clock, member, node } = setUp()
  await node.ask(release)
  const events: string[] = []
  const stops = [
    subscribe('node_failed', event => events.push(`failed ${event.node}`)),
    subscribe('node_restored', event => events.push(`restored ${event.node}`)),
  ]
  member.onRelease = never
  const silent = failure(node.ask(release))
  await clock.advance(50)
  await silent
  expect(node.record).toEqual({ name: 'a:6379', state: 'unavailable', reason: 'no answer within 50 ms' })

  const count = member.asked.length
  expect(await failure(node.ask(release))).toMatchObject({ code: 'STORE_UNAVAILABLE' }) // it was not sent
  expect(member.asked.length).toBe(count)
  // A withdrawal is still sent, although its result is not awaited.
  expect(await failure(node.ask(release, { owed: true }))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(member.asked.length).toBe(count + 1)

  await clock.advance(100)
  member.onRelease = () => true
  await node.ask(release)
  await node.ask(release)
  expect(node.record).toEqual({ name: 'a:6379', state: 'serving' })
  expect(events).toEqual(['failed a:6379', 'restored a:6379'])
  for (const stop of stops) stop()
})

test('an unresponsive node is sent at most a thousand withdrawals', async () => {
  const { clock, member, node } = setUp()
  await node.ask(release)
  member.onRelease = never
  const silent = failure(node.ask(release))
  await clock.advance(50)
  await silent
  for (let index = 0; index < 1_500; index += 1) await failure(node.ask(release, { owed: true }))
  expect(member.asked.length).toBe(1_002)
})

test('a quarantined node reports for how long, and when the quarantine is over', async () => {
  const { clock, member, node } = setUp()
  const events: unknown[] = []
  const stops = [
    subscribe('node_quarantined', event => events.push(event.remaining)),
    subscribe('node_restored', event => events.push(event.node)),
  ]
  member.votesIn = 2_000
  await node.ask(release)
  await clock.advance(500)
  expect(node.record).toMatchObject({ state: 'quarantined', remaining: 1_500, reason: /votes in 2 s/ })
  member.votesIn = 1_500
  await node.ask(release)
  await clock.advance(1_500)
  expect(node.record.state).toBe('serving')
  member.votesIn = 0
  await node.ask(release)
  expect(events).toEqual([2_000, 'a:6379'])
  for (const stop of stops) stop()
})

test('a configuration error of a node is permanent until the node has served', async () => {
  const { clock, member, node } = setUp()
  member.onRelease = () => {
    throw new LeaseError('INVALID_ARGUMENT', 'it is a replica')
  }
  await failure(node.ask(release))
  expect(node.refusal).toMatchObject({ code: 'INVALID_ARGUMENT', message: 'a:6379: it is a replica' })
  await clock.advance(100)
  member.onRelease = () => true
  await node.ask(release)
  expect(node.refusal).toBeUndefined()
  member.onRelease = () => {
    throw new LeaseError('INVALID_ARGUMENT', 'it is a replica')
  }
  await failure(node.ask(release))
  expect(node.refusal).toBeUndefined()
})
