import { defineConfig, type ViteUserConfig } from 'vitest/config'

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/package/fixtures/**'],
    allowOnly: false,
    // Most tests wait most of the time, so that two files at once are no load for two processors.
    maxWorkers: 2,
    // Only what hangs may end by a limit; a busy machine may not.
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})

export default config
