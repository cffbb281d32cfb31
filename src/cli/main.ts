#!/usr/bin/env node
// Loads only what the command needs, because a short job mostly waits for the start.
const { oldNode } = await import('../contract/node-version.ts')
const problem = oldNode()
if (problem !== undefined) {
  // An old Node cannot load the modules below.
  process.stderr.write(`holdfast: ${problem}\n`)
  process.exitCode = 69
} else if (process.argv[2] === 'supervise' && process.send) {
  const { supervise } = await import('./run/supervisor.ts')
  supervise()
} else {
  const { main } = await import('./program.ts')
  // The timers of leases do not keep a process alive, but this process waits for the result.
  const keepAlive = setInterval(() => {}, 60_000)
  process.exitCode = await main(process.argv.slice(2), new URL('../../package.json', import.meta.url))
  clearInterval(keepAlive)
  // A handle that a client library leaves open must not keep a finished process alive.
  setTimeout(() => process.exit(), 500).unref()
}
