import { expect, test } from 'vitest'
import { VirtualClock } from '../../testing/clock.ts'
import { SharedDeadline } from './deadline.ts'
import { SharedTerm } from './term.ts'

test('a deadline that is detached is what the other thread wrote last, also just before', () => {
  for (const [writes, expected] of [
    [[], 10_000 - 102],
    [[8_000], 8_000],
    [[8_000, 2_000], 2_000],
  ] as const) {
    const clock = new VirtualClock()
    const now = () => ({ monotonic: BigInt(clock.now() * 1e6), wall: clock.wall() })
    const reader = new SharedTerm(undefined, now)
    const writer = new SharedTerm(reader.memory, now)
    const grant = { held: true, token: 1n, ttl: 10_000 } as const
    const deadline = new SharedDeadline(reader, clock, grant, 0, { heartbeat: true, background: true })
    for (const remaining of writes) writer.write(() => remaining)
    deadline.detach(clock.now())
    expect(deadline.at).toBe(expected)
    expect(writer.write(() => 9_000)).toBe(false)
    deadline.move(9_500)
    expect(deadline.at).toBe(9_500)
  }
})
