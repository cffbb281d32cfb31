import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { LeaseError } from '../../index.ts'
import { compareMarks, type Mark } from '../mark.ts'

const WRITERS = 1_000

type Append = (resource: string, mark: Mark, pause: number) => Promise<unknown>

/** Lists to which writers append their marks, one for each resource. */
export interface Logs extends AsyncDisposable {
  /** Presents the mark, and appends it unless it is refused. Pauses for this many milliseconds at the worst place. */
  readonly append: Append
  /** The same as one would without a fence. */
  readonly naive: Append
  read(resource: string): Promise<Mark[]>
  /** Kills what keeps the marks, and starts it again. */
  restart?(): Promise<unknown>
  /** Milliseconds between two writers. */
  readonly pace: number
}

/** As the lists have it. */
export const write = ({ epoch, token }: Mark): string => `${epoch}:${token}`

export function parse(line: string): Mark {
  const [epoch = '', token = ''] = line.split(':')
  return { epoch: Number(epoch), token: BigInt(token) }
}

export const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** How long each writer dreams before it shows its mark, and while it writes; in milliseconds. */
const pauses = fc.record({
  before: fc.integer({ min: 0, max: 40 }),
  within: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 5),
})
type Schedule = readonly { readonly before: number; readonly within: number }[]
/** A failure shows the seed instead of all of it. */
const schedule: fc.Arbitrary<Schedule> = fc
  .array(pauses, { minLength: WRITERS, maxLength: WRITERS })
  .map(writers => Object.assign(writers, { [fc.toStringMethod]: () => 'a schedule' }))

/** Holders come one after the other, each with 20 writers, where a number of a script has no digit left. */
function markOf(turn: number): Mark {
  const holder = Math.floor(turn / 20)
  return { epoch: Math.floor(holder / 15), token: 2n ** 53n - 7n + BigInt(holder % 15) }
}

/** The results of a thousand writers. */
class Crowd {
  readonly written: Mark[] = []
  refused = 0

  async run(writers: Schedule, pace: number, append: (mark: Mark, pause: number) => Promise<unknown>) {
    await Promise.all(
      writers.map(async ({ before, within }, turn) => {
        const mark = markOf(turn)
        await sleep(turn * pace + before)
        try {
          await append(mark, within)
          this.written.push(mark)
        } catch (error) {
          if (!isStale(error)) throw error
          this.refused += 1
        }
      }),
    )
  }
}

const isStale = (error: unknown): boolean => LeaseError.is(error) && error.code === 'STALE_TOKEN'
const sorted = (marks: readonly Mark[]): Mark[] => marks.toSorted(compareMarks)

export function testCrowds(places: Readonly<Record<string, () => Promise<Logs>>>): void {
  describe.each(Object.entries(places))('a thousand writers that pause wherever they like, over %s', (_name, open) => {
    test('write in the order of their marks, never after a newer one, and nothing is lost', async () => {
      await using logs = await open()
      let runs = 0
      const property = fc.asyncProperty(schedule, async writers => {
        const resource = `run ${++runs}`
        const crowd = new Crowd()
        await crowd.run(writers, logs.pace, (mark, pause) => logs.append(resource, mark, pause))
        const kept = await logs.read(resource)
        expect(kept).toEqual(sorted(crowd.written))
        expect(kept.length + crowd.refused).toBe(WRITERS)
        expect(kept.at(-1)).toEqual(markOf(WRITERS - 1))
        expect(kept.length).toBeGreaterThanOrEqual(20)
      })
      await fc.assert(property, { numRuns: 2, endOnFailure: true })
    }, 120_000)

    test('without a fence write after newer ones, or over what they wrote', async () => {
      await using logs = await open()
      const crowd = new Crowd()
      const [writers = []] = fc.sample(schedule, 1)
      await crowd.run(writers, logs.pace, (mark, pause) => logs.naive('naive', mark, pause))
      expect(crowd.written).toHaveLength(WRITERS)
      expect(await logs.read('naive')).not.toEqual(sorted(crowd.written))
    }, 60_000)
  })

  const withServer = Object.entries(places).filter(([name]) => name !== 'sqlite' && name !== 'files')
  test.each(withServer)(
    'so do those over %s when it is killed and started again meanwhile',
    async (_name, open) => {
      await using logs = await open()
      const crowd = new Crowd()
      const [writers = []] = fc.sample(schedule, 1)
      let asked = 0
      let failed = 0
      const killed = Promise.withResolvers<void>()
      const done = crowd.run(writers, logs.pace, async (mark, pause) => {
        asked += 1
        if (asked > WRITERS / 2) await killed.promise // or all might be done before it is killed
        for (;;) {
          try {
            return await logs.append('restarted', mark, pause)
          } catch (error) {
            if (isStale(error)) throw error
            failed += 1 // whether or not it was written: once more, with the same mark
            await sleep(20)
          }
        }
      })
      await until('a third was answered', () => crowd.written.length + crowd.refused > WRITERS / 3, { limit: 50_000 })
      const restarted = logs.restart?.()
      killed.resolve()
      await restarted
      await done
      const kept = await logs.read('restarted')
      expect(failed).toBeGreaterThan(0)
      expect(kept).toEqual(sorted(kept))
      expect(kept.map(write)).toEqual(expect.arrayContaining(crowd.written.map(write)))
      expect(kept.at(-1)).toEqual(markOf(WRITERS - 1))
    },
    120_000,
  )
}
