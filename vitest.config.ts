import { existsSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LIMIT } from './test/stalls/stalls.ts'
import { isFull } from './test/tier.ts'

/** These take half a minute or more. */
const LONG =
  /\/(conformance[^/]*|lab\/run\/run|etcd\/test\/cluster|advice\/test\/ttl|failover|thread\/test\/\w+|limits\/\w+|mixed\/mixed|demo|screens|death|fleet)\.test\.ts$/

/** They need Chromium, or packages that only `./script/test --full` installs. */
const FULL_ONLY = [
  'test/{browser,alongside,mixed,planted,specification}/**',
  'test/package/{managers,runtimes,tarballs}.test.ts',
  'examples/integrations/**',
]

const MEMORY = '/dev/shm'

/** Servers and SQLite wait for the disk at each commit, and a busy disk can take longer than a ttl. */
function folderForData(): string {
  if (!existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize > 4e9 ? MEMORY : tmpdir()
}

/** The longest start first, so that none is left over, also where no earlier run left its durations. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId)
    return (await super.sort(files)).sort((a, b) => Number(isLong(b)) - Number(isLong(a)))
  }
}

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['{src,lab,drop-ins,test,examples}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/package/fixtures/**', ...(isFull ? [] : FULL_ONLY)],
    allowOnly: false,
    coverage: { include: ['{src,lab,drop-ins}/**/*.ts'], reporter: ['text-summary', 'html', 'lcov'] },
    // Tests start hundreds of processes. Without a cache, each spends half of its start on stripping types.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '.tools/compile-cache'), TMPDIR: folderForData() },
    // Most tests wait most of the time, but two per core use nine tenths of the processors. With three, calls took longer
    // than the limits that tests check.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongestFirst },
    // test/stalls decides what is repeated.
    globalSetup: './test/stalls/global-setup.ts',
    setupFiles: './test/stalls/setup.ts',
    retry: 2,
    // Only what hangs may end by a limit; a busy machine may not.
    testTimeout: LIMIT,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
  },
})

export default config
