import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from '../../../test/script-node.ts'

test('the recipes have the types of the frameworks', async () => {
  const tsc = promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['--project', join(import.meta.dirname, '..')])
  await tsc.catch((error: { stdout: string }) => expect.fail(error.stdout))
})
