import { defineConfig, type ViteUserConfig } from 'vitest/config'

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/package/fixtures/**'],
    allowOnly: false,
    // Only what hangs may end by a limit; a busy machine may not.
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})

export default config
