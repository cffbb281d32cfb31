import { existsSync, readdirSync, readFileSync } from 'node:fs'

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
 * Kills every process of the group and resolves when they are dead, because SIGKILL takes effect later. `denied`: some
 * belong to another user.
 */
export async function endGroup(group: number): Promise<'gone' | 'denied'> {
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    const result = signalGroup(group, 'SIGKILL')
    if (result === 'gone') return result
    // macOS also reports EPERM if all are dead and some are still zombies.
    if (result === 'denied') return process.platform === 'darwin' ? 'gone' : 'denied'
    // Zombies stay until their parent reads their status. Process 1 of a container may never do so.
    if (pause === 50 && onlyZombies(group)) return 'gone'
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}

function onlyZombies(group: number): boolean {
  if (process.platform !== 'linux' || !existsSync('/proc/self')) return false
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      // "pid (name) state parent group …"; the name may contain spaces and parentheses.
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(pgrp) === group && state !== 'Z' && state !== 'X') return false
    } catch {
      // The process ended meanwhile.
    }
  }
  return true
}
