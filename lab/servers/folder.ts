import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Its standard input ends when this process does, by whatever cause, SIGKILL included. Servers are process groups of
// their own, and each keeps its number in a file `pid` in its folder while it runs.
const WATCHDOG = `
  cat
  for file in "$0"/*/pid; do [ -f "$file" ] && kill -s KILL -- "-$(cat "$file")"; done
  rm -rf "$0" || { sleep 1; rm -rf "$0"; }`

let root: string | undefined

/**
 * A new temporary folder. It goes when this process ends, in whatever way, at the latest, and the process group whose
 * number is in its file `pid` is killed then.
 */
export function newFolder(name: string): string {
  root ??= watch(mkdtempSync(join(tmpdir(), 'holdfast-servers-')))
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
