import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Conformance takes longer than any other file, so it starts first, also where no earlier run left its durations. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith('/test/stores.test.ts')
    return (await super.sort(files)).sort((a, b) => Number(isLongest(b)) - Number(isLongest(a)))
  }
}

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['{src,lab,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/package/fixtures/**'],
    allowOnly: false,
    // Most tests wait most of the time: two files at once leave two processors idle for four fifths of it.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Only what hangs may end by a limit; a busy machine may not.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})

export default config
