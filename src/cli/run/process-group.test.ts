import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { endGroup } from './process-group.ts'

/** The system call that ends only the thread that calls it. */
const EXIT = { x64: 60, arm64: 93 }[process.arch as string]

test.runIf(process.platform === 'linux' && EXIT)(
  'a process whose first thread has ended is not dead as long as another one goes on',
  async () => {
    const thread = 'threads->create(sub { $| = 1; print "begun"; sleep 60 })->detach'
    const command = spawn('perl', ['-Mthreads', '-e', `${thread}; <STDIN>; syscall(${EXIT}, 0)`], { detached: true })
    const [group, ended] = [command.pid as number, once(command, 'exit')]
    onTestFinished(() => void command.kill('SIGKILL'))
    await once(command.stdout, 'data')
    command.stdin.end('\n')
    await until('it looks dead', () => readFileSync(`/proc/${group}/stat`, 'utf8').includes(') Z '))
    const denied = vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    expect(await endGroup(group)).toBe('denied')
    let isOver = false
    const ending = endGroup(group, () => {}).finally(() => {
      isOver = true
    })
    expect(isOver).toBe(false)
    command.kill('SIGKILL')
    await ended
    expect(await ending).toBe('gone')
    expect(denied).toHaveBeenCalled()
  },
)
