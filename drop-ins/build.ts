import { defineConfig, type UserConfig } from 'tsdown'
import { holdfastByName } from '../script/by-name.ts'

/** How each drop-in is built. What they share becomes part of each. */
export const dropIn: UserConfig = defineConfig({
  entry: { index: 'index.ts' },
  format: ['esm', 'cjs'],
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  dts: true,
  outputOptions: { exports: 'named' },
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  plugins: [holdfastByName],
  checks: { legacyCjs: false },
  failOnWarn: true,
  logLevel: 'warn',
})
