import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../../lab/servers/redis.ts'
import { folder, start, store } from './holdfast.ts'

/** How many processes start at once. Half of them wait. */
const CROWD = 40

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
  const codes = results.map(({ code }, index) => (index % 2 || code === 0 ? code : `${code} without --wait`))
  expect(new Set(codes)).toEqual(new Set([0, ...codes.filter(code => code === '75 without --wait')]))
  const lines = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n')
  expect(lines).not.toContain('overlap')
  expect(lines).toHaveLength(codes.filter(code => code === 0).length)
  expect(lines.map(BigInt)).toEqual(lines.map(BigInt).toSorted((a, b) => (a < b ? -1 : 1)))
})
