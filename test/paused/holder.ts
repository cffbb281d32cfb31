import { connect } from '../../src/index.ts'

// A process that holds a lease and checks it in a loop, which blocks its event loop. When the lease is lost it prints the
// time of the last successful check, by the clock that all processes of a machine share.
const [url = '', name = '', ttl = ''] = process.argv.slice(2)
const locks = await connect(url)
const lease = await locks.acquire(name, { ttl: Number(ttl) })
let last = 0n
for (;;) {
  const now = process.hrtime.bigint()
  try {
    lease.assertHeld()
    if (last === 0n) process.stdout.write('holds\n')
    last = now
  } catch (error) {
    const { code } = error as { code: string }
    process.stdout.write(`${JSON.stringify({ last: String(last), code, aborted: lease.signal.aborted })}\n`)
    process.exit()
  }
}
