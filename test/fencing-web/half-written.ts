import { fencedWrite } from '../../src/fencing/files/index.ts'

// A process that is in the middle of a write.
const [path = '', token = ''] = process.argv.slice(2)
async function* half(): AsyncGenerator<string> {
  yield 'half'
  process.stdout.write('half\n')
  await new Promise(resolve => process.stdin.once('data', resolve))
}
await fencedWrite(path, half(), { name: 'ledger', token: BigInt(token) })
