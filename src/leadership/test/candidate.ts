import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type Lease } from '../../index.ts'
import { Ledger } from './ledger.ts'

/**
 * One process that wants to lead, and then writes to the ledger all the time. SIGTERM: it hands over and ends. SIGUSR2: it
 * pauses itself right before its next write, like a paused container, and tries that write when it continues.
 */
const [url = '', path = '', ttl = ''] = process.argv.slice(2)
const ledger = new Ledger(path)
const locks = await connect(url, { ttl: Number(ttl) })
const shutdown = new AbortController()
process.once('SIGTERM', () => shutdown.abort())
let stops = false
process.on('SIGUSR2', () => {
  stops = true
})

async function work({ signal, token }: Lease): Promise<void> {
  ledger.tell('begins', token)
  try {
    while (!signal.aborted) {
      if (stops) {
        stops = false
        ledger.tell('stops', token)
        process.kill(process.pid, 'SIGSTOP') // no check of the lease between this and the write
      }
      ledger.write(token)
      await sleep(2, undefined, { signal }).catch(() => {})
    }
  } finally {
    ledger.tell('ends', token)
  }
}

const election = locks.election('leader', { pause: 10 })
await election.run({ signal: shutdown.signal }, work)
await locks.close()
