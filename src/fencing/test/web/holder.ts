import { once } from 'node:events'
import { connect } from '../../../index.ts'
import { type Kind, writes } from './writes.ts'

// A process that holds a lease, checks it, and writes when it gets a line.
const [store = '', kind = '', how = '', target = ''] = process.argv.slice(2)
const locks = await connect(store)
const lease = await locks.acquire('ledger', { ttl: 2_000 })
lease.assertHeld()
process.stdout.write('about to write\n')
await once(process.stdin, 'data')
let answer = 'written'
try {
  // Only the token: this process knows that the lease is over, and would refuse it before it asks the resource.
  const { name, token } = lease
  await writes[kind as Kind][how as 'fenced' | 'naive'](target, 'by the first', { name, token })
} catch (error) {
  const { code, token, highest } = error as { code: string; token?: bigint; highest?: bigint }
  answer = JSON.stringify({ code, older: (token ?? 0n) < (highest ?? 0n) })
}
process.stdout.write(`${answer}\n`)
process.exit()
