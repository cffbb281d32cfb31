import { existsSync } from 'node:fs'
import { defineConfig, type UserConfig } from 'tsdown'

const sources = {
  index: ['src/index.ts'],
  redis: ['src/stores/redis/index.ts', 'src/stores/redis.ts'],
  sqlite: ['src/stores/sqlite/index.ts', 'src/stores/sqlite.ts'],
  memory: ['src/stores/memory.ts'],
  conformance: ['src/conformance/index.ts'],
  testing: ['src/testing/index.ts'],
  'cli/main': ['src/cli/main.ts'],
}

const entry = Object.fromEntries(
  Object.entries(sources).flatMap(([name, files]) => {
    const file = files.find(path => existsSync(path))
    return file ? [[name, file]] : []
  }),
)

const config: UserConfig = defineConfig({
  entry,
  format: ['esm', 'cjs'],
  dts: true,
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
})

export default config
