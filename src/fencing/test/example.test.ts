import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { ROOT, scriptNode } from '../../../test/script-node.ts'

test('the example fenced-ledger.ts runs over PostgreSQL', async () => {
  await using server = await startPostgres()
  const options = { folder: newFolder('ledger'), env: { DATABASE_URL: server.url() } }
  const { code, stdout, stderr } = await scriptNode([join(ROOT, 'examples/fenced-ledger.ts')], options)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/the first holder is refused: STALE_TOKEN.*true\nthe balance is -900\n$/)
})
