import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'vitest'
import { newFolder } from '../lab/servers/folder.ts'

const FLAGS = process.getuid?.() === 0 ? ['--net', '--mount'] : ['--map-root-user', '--net', '--mount']

/** Loopback, and the files of a name resolver that asks 127.0.0.1. */
const ENTER =
  'ip link set lo up && mount --bind "$0" /etc/resolv.conf && mount --bind "$1" /etc/hosts && shift && exec "$@"'

/**
 * A test that needs network namespaces. Not every machine allows them, so without them the test is skipped and says why.
 * In CI (environment variable CI) it fails.
 */
export function testInNamespace(name: string, work: () => Promise<void>): void {
  test(name, async context => {
    const { error, stderr, status } = spawnSync('unshare', [...FLAGS, 'ip', 'link', 'set', 'lo', 'up'])
    if (error || status !== 0) {
      const why = `no network namespaces here: ${error?.message ?? String(stderr).trim()}`
      if (process.env.CI) throw new Error(why)
      context.skip(why)
    }
    await work()
  })
}

/** Runs a script of this project with a network of its own, and `hosts` in /etc/hosts. Resolves to what it prints. */
export async function runInNamespace(script: string, hosts = ''): Promise<string> {
  const folder = newFolder('namespace')
  const [resolver, names] = [join(folder, 'resolv.conf'), join(folder, 'hosts')]
  writeFileSync(resolver, 'nameserver 127.0.0.1\noptions timeout:5 attempts:3\n')
  writeFileSync(names, `127.0.0.1 localhost\n${hosts}`)
  const command = [process.execPath, script]
  const child = spawn('unshare', [...FLAGS, '--kill-child', 'sh', '-c', ENTER, resolver, names, ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  writeFileSync(join(folder, 'pid'), String(child.pid))
  return text(child.stdout)
}
