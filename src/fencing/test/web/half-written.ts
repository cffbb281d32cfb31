import { once } from 'node:events'
import { fileFence } from '../../files/index.ts'

// A process that has begun a write, and ends it when it gets a line.
const [path = '', token = ''] = process.argv.slice(2)
async function* half(): AsyncGenerator<string> {
  yield 'half'
  process.stdout.write('half\n')
  await once(process.stdin, 'data')
}
const outcome = await fileFence()
  .write({ name: 'ledger', token: BigInt(token) }, path, half())
  .catch(error => error.code)
process.stdout.write(`${outcome ?? 'written'}\n`)
process.exit()
