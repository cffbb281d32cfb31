import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { Random } from '../../../test/simulation/random.ts'
import { signal } from '../../../test/support.ts'
import { StoreLocks } from '../../create-locks.ts'
import type { Election } from '../../index.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'

const TTL = 1_000
/** Milliseconds until the next renewal at the latest. */
const HEARS = TTL / 2

/** What happens to candidates, in virtual milliseconds. */
const steps = fc.array(
  fc.record({
    pass: fc.nat(4_000),
    candidate: fc.nat(2),
    deed: fc.constantFrom('resign', 'break', 'fail', 'return', 'linger', 'leave', 'none'),
  }),
  { maxLength: 30 },
)

interface Candidate {
  readonly election: Election
  readonly stop: AbortController
  readonly run: Promise<void>
  /** Bodies that run, and those of them that believe in their lease. */
  bodies: number
  believes: () => boolean
  fail: (error?: Error) => void
  /** Milliseconds that the next body takes to end. */
  linger: number
}

test('whatever happens to candidates, their bodies do not overlap, one leads at a time, tokens rise, and one leads in the end', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (plan, seed) => {
      const clock = new VirtualClock()
      const store = memory({ clock })
      const random = new Random(seed).next
      const wrong: string[] = [] // an error of a check would count as a failure of the work
      let last = 0n
      let brokenAt = Number.NEGATIVE_INFINITY

      const candidates = [0, 1, 2].map((): Candidate => {
        const locks = new StoreLocks(store, { ttl: TTL }, { clock, random })
        const stop = new AbortController()
        const election = locks.election('a', { pause: 100, maxPause: 1_000 })
        const candidate: Candidate = {
          election,
          stop,
          bodies: 0,
          believes: () => false,
          fail: () => {},
          linger: 0,
          run: election.run({ signal: stop.signal }, async lease => {
            candidate.bodies += 1
            if (candidate.bodies > 1) wrong.push('two bodies of one candidate')
            if (lease.token <= last) wrong.push('a token that is not higher')
            last = lease.token
            candidate.believes = () => !lease.signal.aborted
            const told = new Promise<void>((resolve, reject) => {
              lease.signal.addEventListener('abort', () => resolve())
              candidate.fail = error => (error ? reject(error) : resolve())
            })
            try {
              await told
              const { linger } = candidate
              if (linger > 0) await new Promise<void>(resolve => clock.after(linger, resolve))
            } finally {
              candidate.bodies -= 1
              candidate.believes = () => false
            }
          }),
        }
        return candidate
      })

      for (const { pass, candidate: index, deed } of plan) {
        const candidate = candidates[index] as Candidate
        if (deed === 'resign') void candidate.election.resign()
        if (deed === 'break') {
          await store.break('a', { by: 'the test' }, signal)
          brokenAt = clock.now() // the old leader notices at its next renewal
        }
        if (deed === 'fail') candidate.fail(new Error('the work failed'))
        if (deed === 'return') candidate.fail()
        if (deed === 'linger') candidate.linger = 3_000
        if (deed === 'leave' && index > 0) candidate.stop.abort() // the first stays
        const until = clock.now() + pass
        while (clock.now() < until) {
          await clock.advance(Math.min(100, until - clock.now()))
          const believers = candidates.filter(({ believes }) => believes())
          if (clock.now() > brokenAt + HEARS && believers.length > 1) wrong.push('two who believe')
        }
      }
      await clock.advance(20_000)
      expect(wrong).toEqual([])
      expect(candidates.filter(({ believes }) => believes())).toHaveLength(1)
      for (const { stop } of candidates) stop.abort()
      await clock.advance(5_000)
      await Promise.all(candidates.map(({ run }) => run))
      expect(clock.pending).toBe(0)
    }),
    { numRuns: 60 },
  )
  emit.mockRestore()
})
