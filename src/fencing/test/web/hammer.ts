import { readFileSync } from 'node:fs'
import { LeaseError } from '../../../index.ts'
import { fencedWrite } from '../../files/index.ts'

// A process that writes its token, each time with one above all that it has seen and that is its own, 25 times.
const COUNT = 4
const [path = '', index = '0'] = process.argv.slice(2)
let token = 0n
process.stdout.write('started\n')
for (let tries = 0; tries < 25; tries++) {
  token += BigInt(COUNT) - (token % BigInt(COUNT)) + BigInt(index)
  try {
    await fencedWrite(path, String(token), { name: 'ledger', token }, { wait: 30_000 })
    token = BigInt(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'STALE_TOKEN') throw error
    token = error.highest as bigint
  }
}
process.stdout.write('done\n')
