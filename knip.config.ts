import type { KnipConfig } from 'knip'
import { ENTRIES } from './script/entries.ts'

const config: KnipConfig = {
  workspaces: {
    '.': {
      entry: [
        ...Object.values(ENTRIES),
        'src/cli/main.ts',
        'src/heartbeat-worker.ts',
        'script/generate.ts',
        'script/npm-files.ts',
        'script/pictures.ts',
        'script/proof/prove.ts',
        'script/sizing.ts',
        'examples/*.ts',
        'examples/{dashboard,invoices}/*.ts',
        'test/alongside/worker.ts',
        'test/browser/holder.ts',
        'test/clones/{clone,generator}.ts',
        'test/mixed/worker.ts',
        'test/names/{dead-name-server,silent-address}.ts',
        'test/stalls/monitor.ts',
        '{src,test}/**/*.test.ts',
      ],
      project: ['src/**/*.ts', 'test/**/*.ts', 'script/**/*.ts', 'examples/**/*.ts', '*.config.ts'],
      ignore: ['test/package/fixtures/**', 'examples/integrations/**'], // with packages of their own
      ignoreDependencies: ['holdfast'], // a link to the checkout, for the drop-ins
      ignoreBinaries: ['openssl', 'perl', 'unshare'], // of the machine
    },
    'drop-ins/*': {
      entry: ['index.ts', '**/*.test.ts'],
      project: ['**/*.ts'],
    },
    lab: {
      entry: ['conformance/index.ts', 'run/{client,resource}-process.ts', '**/*.test.ts'],
      project: ['**/*.ts'],
      ignoreDependencies: ['ioredis', 'mysql2', 'pg'],
    },
  },
}

export default config
