import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Sends a signal to every process of the group. `denied`: this user may signal none of them. */
export function signalGroup(group: number, signal: NodeJS.Signals): 'sent' | 'gone' | 'denied' {
  try {
    process.kill(-group, signal)
    return 'sent'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'denied' : 'gone'
  }
}

/**
 * Kills every process of the group and resolves when they are dead, because SIGKILL takes effect later. Those of another
 * user it cannot kill: then it calls `onDenied` and waits for their end, or resolves to `denied` without that.
 */
export async function endGroup(group: number, onDenied?: () => void): Promise<'gone' | 'denied'> {
  let isDenied = false
  for (let pause = 1; ; pause = Math.min(pause * 2, isDenied ? 1_000 : 50)) {
    const result = signalGroup(group, 'SIGKILL')
    if (result === 'gone') return result
    // macOS also reports EPERM if all are dead and some are still zombies.
    if (result === 'denied' && process.platform === 'darwin') return 'gone'
    // Zombies stay until their parent reads their status. Process 1 of a container may never do so.
    if ((result === 'denied' || pause >= 50) && onlyZombies(group)) return 'gone'
    if (result === 'denied') {
      if (!onDenied) return result
      if (!isDenied) onDenied()
      isDenied = true
    }
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}

/** False also if it cannot be found out. */
function onlyZombies(group: number): boolean {
  try {
    // In a PID namespace without its own /proc, the numbers there are others.
    if (readlinkSync('/proc/self') !== String(process.pid)) return false
    return !readdirSync('/proc').some(pid => /^\d+$/.test(pid) && isAlive(pid, group))
  } catch {
    return false
  }
}

/** Is it a process of the group, and not dead? Throws if it cannot be read. */
function isAlive(pid: string, group: number): boolean {
  try {
    // "pid (name) state parent group …"; the name may contain spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, , pgrp] = fields
    // A process whose first thread has ended is shown as a zombie while other threads go on, such as in a slow write.
    const isDead = state === 'X' || (state === 'Z' && Number(fields[17]) <= 1)
    return Number(pgrp) === group && !isDead
  } catch (error) {
    if (/^(ENOENT|ESRCH)$/.test(String((error as NodeJS.ErrnoException).code))) return false // it ended meanwhile
    throw error
  }
}
