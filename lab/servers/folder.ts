import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Its standard input ends when this process ends, even by SIGKILL. Each server is a process group with its number in the
// file `pid` of its folder. The children of PostgreSQL have groups of their own, and do not end while they are paused.
const WATCHDOG = `
  cat
  for file in "$0"/*/pid; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    kill -s KILL -- "-$pid" $(cat "/proc/$pid/task/$pid/children")
  done
  rm -rf "$0" || { sleep 1; rm -rf "$0"; }`

const roots = new Map<string, string>()

/**
 * A new temporary folder. When this process ends, even by SIGKILL, the folder is removed, and the process group in its
 * file `pid` is killed.
 */
export function newFolder(name: string, parent: string = tmpdir()): string {
  const root = roots.get(parent) ?? watch(mkdtempSync(join(parent, 'holdfast-servers-')))
  roots.set(parent, root)
  chmodSync(root, 0o711) // a server of another user must find its own folder
  return mkdtempSync(join(root, `${name}-`))
}

function watch(folder: string): string {
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG, folder], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.unref()
  ;(watchdog.stdin as Socket).unref()
  return folder
}
