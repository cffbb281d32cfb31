import { readFileSync } from 'node:fs'
import { LeaseError } from '../../../index.ts'
import { fileFence } from '../../files/index.ts'

// A process that writes its token, each time with one above all that it has seen and that is its own, 25 times.
const COUNT = 4
const [path = '', index = '0'] = process.argv.slice(2)
let token = 0n
process.stdout.write('started\n')
for (let tries = 0; tries < 25; tries++) {
  token += BigInt(COUNT) - (token % BigInt(COUNT)) + BigInt(index)
  try {
    await fileFence({ wait: 30_000 }).write({ name: 'ledger', token }, path, String(token))
    token = BigInt(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'STALE_TOKEN') throw error
    token = error.highest as bigint
  }
}
process.stdout.write('done\n')
