import { connect } from '../../index.ts'

/** A process that holds these names until it is killed. */
const [url = '', ttl = '', ...names] = process.argv.slice(2)
const locks = await connect(url, { ttl: Number(ttl) })
const set = await locks.all(names).acquire()
process.stdout.write(`${set.leases.map(({ token }) => token).join(' ')}\n`)
setInterval(() => set.assertHeld(), 100)
