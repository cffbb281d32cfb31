import { join } from 'node:path'
import cron from 'node-cron'
import { expect, test } from 'vitest'
import { newFolder } from '../../lab/servers/folder.ts'
import { until } from '../../lab/servers/until.ts'
import { createLocks } from '../create-locks.ts'
import { sqlite } from '../stores/sqlite/index.ts'

test('with once in a task of node-cron, one of three replicas runs each scheduled time', async () => {
  const file = join(newFolder('node-cron'), 'leases.db')
  const runs: bigint[] = []
  const skipped: string[] = []
  const replicas = ['a', 'b', 'c'].map(owner => createLocks(sqlite(file), { owner }))
  const begun = Math.floor(Date.now() / 1_000)
  const tasks = replicas.map(locks =>
    cron.schedule('* * * * * *', async () => {
      const outcome = await locks.once('tick', { within: 500 }, async ({ token }) => runs.push(token))
      if (!outcome.ran) skipped.push(outcome.why)
    }),
  )
  try {
    await until('two runs, and four skipped', () => runs.length >= 2 && skipped.length >= 4)
    expect(runs.length).toBeLessThanOrEqual(Math.floor(Date.now() / 1_000) - begun)
    expect(new Set(runs).size).toBe(runs.length)
  } finally {
    for (const task of tasks) await task.destroy()
    await Promise.all(replicas.map(locks => locks.close()))
  }
})
