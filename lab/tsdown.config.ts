import { defineConfig, type UserConfig } from 'tsdown'
import { holdfastByName } from '../script/by-name.ts'

const conformance = { conformance: 'conformance/index.ts' }

const config: UserConfig = defineConfig({
  entry: conformance,
  format: {
    esm: {
      // The processes are opened by their paths.
      entry: {
        ...conformance,
        index: 'index.ts',
        'client-process': 'run/client-process.ts',
        'resource-process': 'run/resource-process.ts',
      },
    },
    cjs: {},
  },
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  dts: { entry: Object.values(conformance) },
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  copy: ['servers/clock.c', 'servers/names.c'],
  plugins: [holdfastByName],
  checks: { legacyCjs: false }, // Jest runs CommonJS
  failOnWarn: true,
  logLevel: 'warn',
})

export default config
