import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'

test('the example redis.ts runs', async () => {
  await using server = await startRedis()
  const file = join(ROOT, 'examples/redis.ts')
  const { code, stdout, stderr } = await scriptNode([file], { folder: server.folder, env: { REDIS_URL: server.url } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^holding reports with token \d{16}\nreports is held, with the note: monthly reports\n$/)
})
