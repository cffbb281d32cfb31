import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startPostgres } from '../postgres.ts'
import { stateOf } from '../process.ts'
import { until } from '../until.ts'

test.each([false, true])('a stopped server leaves no shared memory (paused before: %s)', async isPaused => {
  const server = await startPostgres()
  const [, , , , , , ids = ''] = readFileSync(join(server.folder, 'data/postmaster.pid'), 'utf8').split('\n')
  const [key = '', id = ''] = ids.trim().split(/\s+/)
  expect(segments()).toContainEqual([key, id])
  if (isPaused) await server.pause()
  await server.stop()
  expect(segments()).not.toContainEqual([key, id])
})

test('the children of a paused server go when the process that started it is killed', async () => {
  const module = JSON.stringify(join(import.meta.dirname, '../postgres.ts'))
  const script = `
    const server = await (await import(${module})).startPostgres()
    const [{ pid }] = await server.query('select pid from pg_stat_activity where pid <> pg_backend_pid()')
    await server.pause()
    console.log(pid)`
  const parent = spawn(
    process.execPath,
    ['--experimental-strip-types', '--no-warnings', '--input-type=module', '-e', script],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const [line] = await once(parent.stdout, 'data')
  const child = `/proc/${Number(line)}`
  expect(existsSync(child)).toBe(true)
  parent.kill('SIGKILL')
  // A zombie counts as ended: in a container, process 1 may not reap orphans.
  await until('the child is gone', () => !existsSync(child) || stateOf(Number(line)) === 'Z')
})

/** Key and id of each segment of shared memory on this machine. */
function segments(): string[][] {
  const [, ...lines] = readFileSync('/proc/sysvipc/shm', 'utf8').trim().split('\n')
  return lines.map(line => line.trim().split(/\s+/).slice(0, 2))
}
