import { expect, test } from 'vitest'
import { startClock } from '../../../lab/servers/clock.ts'
import { alive, family, start, until } from './holdfast.ts'

test('the command is ended by SIGKILL at once when the machine slept, which only the wall clock shows', async () => {
  using clock = startClock()
  const script = 'trap "" TERM; echo ready; while :; do sleep 0.02; done'
  const options = ['run', 'job', '--ttl', '1h', '--grace', '10m', '--', 'sh', '-c', script]
  const running = start(options, { env: clock.env })
  await running.says('ready')
  const { command } = family(running)
  running.kill('SIGSTOP')
  clock.jumpWall(58 * 60_000) // what is left is less than the 5 % at which SIGKILL is due
  await until(() => !alive(command), 'the end of the command')
  running.kill('SIGCONT')
  expect((await running.ended).code).toBe(76)
})
