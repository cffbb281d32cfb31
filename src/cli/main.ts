#!/usr/bin/env node
// Only what is asked for is loaded: starting is most of what a short job waits for.
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
  // The library keeps no process alive for a renewal that is under way, but here its outcome is waited for.
  const working = setInterval(() => {}, 60_000)
  process.exitCode = await main(process.argv.slice(2), new URL('../../package.json', import.meta.url))
  clearInterval(working)
  // What a client library may leave open must not keep a finished job from ending.
  setTimeout(() => process.exit(), 500).unref()
}
