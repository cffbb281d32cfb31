#!/usr/bin/env node
// Only what is asked for is loaded: starting is most of what a short job waits for.
if (process.argv[2] === 'supervise' && process.send) {
  const { supervise } = await import('./supervisor.ts')
  supervise()
} else {
  const { main } = await import('./program.ts')
  process.exitCode = await main(process.argv.slice(2), new URL('../../package.json', import.meta.url))
  // What a client library may leave open must not keep a finished job from ending.
  setTimeout(() => process.exit(), 500).unref()
}
