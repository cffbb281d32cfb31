import { once } from 'node:events'
import { fencedWrite } from '../../files/index.ts'

// A process that has begun a write, and ends it when it gets a line.
const [path = '', token = ''] = process.argv.slice(2)
async function* half(): AsyncGenerator<string> {
  yield 'half'
  process.stdout.write('half\n')
  await once(process.stdin, 'data')
}
const outcome = await fencedWrite(path, half(), { name: 'ledger', token: BigInt(token) }).catch(error => error.code)
process.stdout.write(`${outcome ?? 'written'}\n`)
process.exit()
