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
  const { keepAlive } = await import('../contract/timers.ts')
  const { main } = await import('./program.ts')
  const { stopReceived } = await import('./signals.ts')
  let unwritten: NodeJS.ErrnoException | undefined
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') unwritten ??= error // a closed pipe is not an error
  })
  // The timers of leases do not keep a process alive, but this process waits for the result.
  const end = keepAlive()
  process.exitCode = await main(process.argv.slice(2), new URL('../../package.json', import.meta.url))
  end()
  // A slow reader gets all of the output. The callback is also called after an error, such as a closed pipe.
  const written = [process.stdout, process.stderr].map(
    stream => new Promise<void>(resolve => stream.write('', () => resolve())),
  )
  await Promise.race([Promise.all(written), stopReceived]) // a reader that hangs may never read
  if (unwritten && process.exitCode === 0) {
    process.stderr.write(`holdfast: the output could not be written: ${unwritten.message}\n`)
    process.exitCode = 74
  }
  // A handle that a client library leaves open must not keep a finished process alive.
  setTimeout(() => process.exit(), 500).unref()
}
