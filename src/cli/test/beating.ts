/**
 * beating.ts LOG NAME [ignore-term]: a job that records when it ran. It appends `NAME MS` to LOG at its start and every
 * 2 ms. MS is of the monotonic clock that all processes of a machine share. It ends after 60 s.
 */
import { openSync, writeSync } from 'node:fs'

const [log = '', name = '', ...options] = process.argv.slice(2)
const file = openSync(log, 'a')

function beat(): void {
  const [seconds, nanoseconds] = process.hrtime()
  writeSync(file, `${name} ${(seconds * 1e3 + nanoseconds / 1e6).toFixed(3)}\n`)
}

if (options.includes('ignore-term')) process.on('SIGTERM', () => {})
beat()
setInterval(beat, 2)
setTimeout(() => process.exit(), 60_000)
