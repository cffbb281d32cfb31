import { expect, test } from 'vitest'
import { startClock } from '../../../lab/servers/clock.ts'
import { alive, family, start, until } from './holdfast.ts'

test('after the machine slept, which only the wall clock shows, the command gets SIGKILL at once', async () => {
  using clock = startClock()
  const script = 'trap "" TERM; echo ready; while :; do sleep 0.02; done'
  const options = ['run', 'job', '--ttl', '1h', '--grace', '10m', '--', 'sh', '-c', script]
  const running = start(options, { env: clock.env })
  await running.prints('ready')
  const { command } = family(running)
  running.kill('SIGSTOP')
  clock.jumpWall(58 * 60_000) // less than 5 % of the ttl is left, so SIGKILL is due
  await until(() => !alive(command), 'the end of the command')
  running.kill('SIGCONT')
  expect((await running.ended).code).toBe(76)
})
