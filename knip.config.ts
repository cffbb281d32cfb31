import type { KnipConfig } from 'knip'
import { ENTRIES } from './script/entries.ts'

const config: KnipConfig = {
  entry: [
    ...Object.values(ENTRIES),
    'src/cli/main.ts',
    'src/heartbeat-worker.ts',
    'lab/prove/{client,resource}.ts',
    'script/generate.ts',
    'script/proof/prove.ts',
    'examples/**/*.ts',
    '{src,lab,test}/**/*.test.ts',
  ],
  project: ['{src,lab}/**/*.ts', 'test/**/*.ts', 'script/**/*.ts', 'examples/**/*.ts', '*.config.ts'],
  ignore: ['test/package/fixtures/**'],
}

export default config
