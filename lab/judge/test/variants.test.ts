import { describe, expect, test } from 'vitest'
import { judge } from '../checker.ts'
import { type Contest, contest } from './contest.ts'
import { QueueLock } from './queue-lock.ts'
import { QuorumLock } from './quorum-lock.ts'
import { variants } from './variants.ts'

/** The checker must find a mistake within this number of runs. */
const RUNS = 40

describe('the checker finds', () => {
  test.for(Object.entries(variants))('%s', async ([, { contest: about, breaks }]) => {
    const outcomes = new Set<string>()
    for (let seed = 0; seed < RUNS; seed += 1) {
      const verdict = judge(await contest(seed, about))
      const row = verdict.rows.find(({ promise }) => promise === breaks)
      if (row?.outcome === 'violated') {
        expect(verdict.outcome).toBe('violated')
        expect(verdict.explanation.length).toBeGreaterThan(1)
        return
      }
      for (const { promise, outcome } of verdict.rows) outcomes.add(`${promise} ${outcome}`)
    }
    expect.fail(`${RUNS} runs had only these outcomes: ${[...outcomes].join(', ')}`)
  })
})

describe('the checker passes', () => {
  const right: Readonly<Record<string, { runs: number; about: Partial<Contest> }>> = {
    'a lock over one server': { runs: RUNS, about: {} },
    'a lock with a queue': { runs: RUNS / 4, about: { queue: true, lock: home => new QueueLock(home) } },
    'a lock with a queue and a client far away': {
      runs: RUNS / 4,
      about: { queue: true, far: true, lock: home => new QueueLock(home) },
    },
    'a lock over five servers': { runs: RUNS / 4, about: { lock: home => new QuorumLock(home) } },
  }

  test.for(Object.entries(right))('%s', async ([, { runs, about }]) => {
    for (let seed = 0; seed < runs; seed += 1) {
      const { outcome, rows } = judge(await contest(seed, about))
      expect(
        rows.flatMap(({ violations, missing }) => [...violations, ...missing]),
        `seed ${seed}`,
      ).toEqual([])
      expect(outcome).toBe('passed')
    }
  })
})

test('a seed gives the same history each time', async () => {
  expect(await contest(3)).toEqual(await contest(3))
})
