/**
 * The nightly invoice run: one invoice per order, in a ledger of its own. It may be killed at any moment and started
 * again anywhere; it goes on where the last run left off.
 *
 *     holdfast run nightly-invoices -- node job.ts [LEDGER [MS_PER_ORDER]]
 *
 * Exit codes: 0 done, 3 refused by the ledger because a newer run has written, 64 not started by `holdfast run`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Ledger, Refused } from './ledger.ts'
import { readOrders } from './orders.ts'

const REFUSED = 3
const USAGE = 64

const [path = 'ledger.db', pace = '100'] = process.argv.slice(2)
process.exitCode = await main(path, Number(pace))

async function main(path: string, msPerOrder: number): Promise<number> {
  if (!process.env.HOLDFAST_TOKEN) {
    console.error('job: no HOLDFAST_TOKEN; start it with: holdfast run nightly-invoices -- node job.ts')
    return USAGE
  }
  const token = BigInt(process.env.HOLDFAST_TOKEN)
  const ledger = new Ledger(path)
  try {
    // First of all, so that no older run can add to what is read next.
    ledger.raise(token)
    const done = new Set(ledger.invoices().map(({ order }) => order))
    const orders = readOrders()
    console.log(`token ${token}, ${done.size} of ${orders.length} invoiced`)
    for (const { id, customer, cents } of orders) {
      if (done.has(id)) continue
      await sleep(msPerOrder) // here a real job would typeset the invoice and mail it
      ledger.write({ order: id, customer, cents, token })
      done.add(id)
      console.log(`${done.size} of ${orders.length}: ${id}, ${customer}, ${(cents / 100).toFixed(2)}`)
    }
    console.log('done')
    return 0
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    console.error(`refused: ${error.message}: a newer run took over, this one stops`)
    return REFUSED
  } finally {
    ledger.close()
  }
}
