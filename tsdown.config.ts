import { existsSync } from 'node:fs'
import { defineConfig, type UserConfig } from 'tsdown'

// The entry points of `exports` in package.json.
const subpaths = present({
  index: 'src/index.ts',
  redis: store('redis'),
  redlock: store('redlock'),
  postgres: store('postgres'),
  etcd: store('etcd'),
  sqlite: store('sqlite'),
  memory: store('memory'),
  zookeeper: store('zookeeper'),
  'fencing/postgres': 'src/fencing/postgres/index.ts',
  'fencing/redis': 'src/fencing/redis/index.ts',
  'fencing/sqlite': 'src/fencing/sqlite/index.ts',
  prometheus: 'src/observe/prometheus.ts',
  otel: 'src/observe/otel.ts',
  conformance: 'src/conformance/index.ts',
  testing: 'src/testing/index.ts',
  'fencing/http': 'src/fencing/http/index.ts',
  'fencing/objects': 'src/fencing/objects/index.ts',
  'fencing/files': 'src/fencing/files/index.ts',
})
const commandLine = present({ 'cli/main': 'src/cli/main.ts' })
// Opened by its path, from both formats: a worker may be of another format than who starts it.
const thread = { 'thread/worker': 'src/core/thread/worker.ts' }
// Processes of their own, of the command line.
const prove = { 'prove/client': 'lab/prove/client.ts', 'prove/resource': 'lab/prove/resource.ts' }

const config: UserConfig = defineConfig({
  entry: subpaths,
  format: { esm: { entry: { ...subpaths, ...commandLine, ...thread, ...prove } }, cjs: {} },
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  copy: ['lab/servers/clock.c'],
  dts: { entry: Object.values(subpaths) },
  // Users with TypeScript's default libraries need it for AsyncDisposable.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  // Jest runs CommonJS.
  checks: { legacyCjs: false },
  failOnWarn: true,
  logLevel: 'warn',
})

export default config

function present(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).filter(([, path]) => existsSync(path)))
}

function store(name: string): string {
  return `src/stores/${name}/index.ts`
}
