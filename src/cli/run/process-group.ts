import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Sends a signal to every process of the group. `denied`: none that this user may signal. */
export function signalGroup(group: number, signal: NodeJS.Signals): 'sent' | 'gone' | 'denied' {
  try {
    process.kill(-group, signal)
    return 'sent'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'denied' : 'gone'
  }
}

/**
 * Kills every process of the group and resolves once they are dead: SIGKILL is only a request until the kernel has
 * carried it out. `denied`: some belong to another user.
 */
export async function endGroup(group: number): Promise<'gone' | 'denied'> {
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    const answer = signalGroup(group, 'SIGKILL')
    if (answer === 'gone') return answer
    // macOS says the same of a group in which all are dead and some not yet noticed by their parent.
    if (answer === 'denied') return process.platform === 'darwin' ? 'gone' : 'denied'
    // Dead members stay listed until their parent looks; a parent that is process 1 of a container may never do so.
    if (pause === 50 && onlyZombies(group)) return 'gone'
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}

function onlyZombies(group: number): boolean {
  if (process.platform !== 'linux' || !existsSync('/proc/self')) return false
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      // "pid (name) state parent group …"; the name may hold spaces and brackets.
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(pgrp) === group && state !== 'Z' && state !== 'X') return false
    } catch {
      // It ended while we looked.
    }
  }
  return true
}
