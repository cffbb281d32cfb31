import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type UserConfig } from 'tsdown'
import { ENTRIES } from './script/entries.ts'
import { minifiedScripts } from './script/lua.ts'
import { linkedPages } from './script/manifest.ts'

const manifest = readFileSync(join(import.meta.dirname, 'package.json'), 'utf8')

const commandLine = { 'cli/main': 'src/cli/main.ts' }
// Opened by its path, from both formats: a worker may be of another format than who starts it.
const thread = { 'thread/worker': 'src/heartbeat-worker.ts' }

// The processes of `holdfast demo`.
const demo = { 'demo/demo': 'examples/invoices/demo.ts', 'demo/job': 'examples/invoices/job.ts' }

const keepNames = { function: true, class: true }

const config: UserConfig = defineConfig({
  entry: ENTRIES,
  format: { esm: { entry: { ...ENTRIES, ...commandLine, ...thread, ...demo } }, cjs: {} },
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  plugins: [minifiedScripts(), { name: 'linked-pages', renderChunk: code => linkedPages(code, manifest) }],
  // Declarations keep the doc comments. A stack trace keeps its functions and has one statement on a line.
  outputOptions: {
    comments: { legal: false, annotation: true, jsdoc: false },
    // In a chunk with other code, it would make circles.
    codeSplitting: { groups: [{ name: 'runtime', test: /rolldown.runtime/ }] },
  },
  minify: { mangle: { keepNames: true }, compress: { sequences: false, keepNames }, codegen: false },
  dts: { entry: Object.values(ENTRIES) },
  // Users with TypeScript's default libraries need it for AsyncDisposable.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  // Jest runs CommonJS.
  checks: { legacyCjs: false },
  failOnWarn: true,
  logLevel: 'warn',
})

export default config
