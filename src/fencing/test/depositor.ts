import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { connect, LeaseError } from '../../index.ts'
import { accounts } from './accounts.ts'

// A process that deposits 100: reads the balance under a lease, checks the lease, and writes the sum when it gets a line.
const [engine = '', place = '', leases = '', how = ''] = process.argv.slice(2)
const account = accounts[engine]?.(place)
if (!account) throw new Error(`there is no account of ${engine}`)
const locks = await connect(leases)
const told = once(createInterface({ input: process.stdin }), 'line')

const lease = await locks.acquire('account', { ttl: 2_000 })
const balance = await account.read()
lease.assertHeld()
process.stdout.write(`read ${balance}\n`)
await told
try {
  // The token alone: the lease is known to be over here, and is refused before the account is asked.
  const { name, token } = lease
  await account.write(balance + 100, how === 'fenced' ? { name, token } : undefined)
  process.stdout.write('written\n')
} catch (error) {
  if (!LeaseError.is(error) || error.highest === undefined) throw error
  process.stdout.write(`refused ${error.code} ${error.token === lease.token && error.highest > lease.token}\n`)
}
await lease.release()
await locks.close()
await account.close()
process.exit()
