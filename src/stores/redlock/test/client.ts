import { connect, subscribe } from '../../../index.ts'

/**
 * Another process that waits for a name several times at once, and holds it briefly each time. It reports each
 * holding as a line, and of the votes that were counted at its end.
 */
const [url = '', name = '', count = '', hold = '', ttl = ''] = process.argv.slice(2)
const votes: Record<string, number> = {}
subscribe('votes_counted', ({ outcome }) => {
  votes[outcome] = (votes[outcome] ?? 0) + 1
})
const locks = await connect(url, { ttl: Number(ttl) })
const tell = (told: object): boolean => process.stdout.write(`${JSON.stringify(told)}\n`)
const once = async (): Promise<void> => {
  const lease = await locks.acquire(name)
  const from = String(process.hrtime.bigint())
  await new Promise(resolve => setTimeout(resolve, Number(hold)))
  lease.assertHeld()
  tell({ token: String(lease.token), from, to: String(process.hrtime.bigint()) })
  await lease.release()
}
await Promise.all(Array.from({ length: Number(count) }, once))
tell({ votes })
await locks.close()
