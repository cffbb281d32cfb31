import { expect, test } from 'vitest'

/** `SEED=17` repeats one run; `SEEDS=100000` runs more. */
const { SEED, SEEDS } = process.env

interface Run {
  readonly violations: readonly unknown[]
  /** How often each thing that matters happened. */
  readonly counts: Readonly<Record<string, number>>
  readonly time: number
}

interface Runs {
  /** What must hold in `$climate` runs. */
  readonly title: string
  /** Repeats the tests. */
  readonly folder: string
  readonly climates: readonly string[]
  readonly seeds: number
  readonly simulate: (seed: number) => Promise<Run>
  /** What so many runs must show at least. Otherwise they prove nothing. */
  readonly least: { readonly of: number; readonly counts: Readonly<Record<string, number>> }
}

/** Tests that nothing is violated in many simulated runs, and that these show what they are for. */
export function testRuns({ title, folder, climates, seeds: usual, simulate, least }: Runs): void {
  const seeds = SEED === undefined ? Array.from({ length: Number(SEEDS ?? usual) }, (_, seed) => seed) : [Number(SEED)]
  const seen = new Map<string, number>()
  const first = new Map<number, Run>()

  test.for(climates.map((climate, index) => ({ climate, index })))(
    title,
    { timeout: 600_000 },
    async ({ climate, index }) => {
      for (const seed of seeds.filter(each => each % climates.length === index)) {
        const run = await simulate(seed)
        first.set(seed, run)
        const { violations, counts, time } = run
        const replay = `SEED=${seed} npm test -- ${folder}`
        expect(violations, `${climate}, ${Math.round(time)} ms; replay with ${replay}`).toEqual([])
        for (const [name, count] of Object.entries(counts)) seen.set(name, (seen.get(name) ?? 0) + count)
      }
    },
  )

  test.runIf(SEED === undefined)('the runs have shown what they are for', () => {
    // Few runs vary much.
    const share = Math.min(seeds.length / least.of, 1) ** 2
    const missing = Object.entries(least.counts).filter(
      ([name, count]) => (seen.get(name) ?? 0) < Math.floor(count * share),
    )
    expect(missing.map(([name]) => [name, seen.get(name)])).toEqual([])
  })

  test('a seed gives the same run each time', { timeout: 600_000 }, async () => {
    for (const seed of seeds.slice(0, climates.length))
      expect(await simulate(seed)).toEqual(first.get(seed) ?? (await simulate(seed)))
  })
}
