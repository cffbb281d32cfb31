import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../../lab/servers/redis.ts'
import { folder, start, store } from './holdfast.ts'

/** How many processes start at once. Half of them wait. */
const CROWD = 40
/** The exit codes of those that do not: held by another, or not answered within 2 s while 40 processes start. */
const WITHOUT_WAIT = [0, 75, 69]

// mkdir fails if another process is in the critical section.
const CRITICAL = 'mkdir inside || echo overlap >>log; echo "$HOLDFAST_TOKEN" >>log; sleep 0.01; rmdir inside'

test.each([
  ['sqlite', async () => store()],
  [
    'redis',
    async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      return server.url
    },
  ],
] as const)('many processes that start at once over %s run one at a time', { timeout: 240_000 }, async (_, open) => {
  const env = { HOLDFAST_STORE: await open() }
  const name = randomBytes(4).toString('hex')
  const results = await Promise.all(
    Array.from({ length: CROWD }, (_each, index) => {
      const wait = index % 2 ? ['--wait', '200s'] : []
      return start(['run', name, ...wait, '--', 'sh', '-c', CRITICAL], { env }).ended
    }),
  )
  for (const [index, { code, err }] of results.entries()) expect(index % 2 ? [0] : WITHOUT_WAIT, err).toContain(code)
  const lines = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n')
  expect(lines).not.toContain('overlap')
  expect(lines).toHaveLength(results.filter(({ code }) => code === 0).length)
  expect(lines.map(BigInt)).toEqual(lines.map(BigInt).toSorted((a, b) => (a < b ? -1 : 1)))
})
