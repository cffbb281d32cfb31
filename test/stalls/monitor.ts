/** A process that notes when the machine gave it no turn: appends `END DURATION` to a file, in ms since 1970 and ms. */
import { appendFileSync } from 'node:fs'
import { STALL } from './stalls.ts'

const TURN = 5
const [file = ''] = process.argv.slice(2)
let last = performance.now()

setInterval(() => {
  const now = performance.now()
  const late = now - last - TURN
  last = now
  if (late > STALL) appendFileSync(file, `${Date.now()} ${Math.round(late)}\n`)
}, TURN)
process.once('disconnect', () => process.exit()) // however the tests end
