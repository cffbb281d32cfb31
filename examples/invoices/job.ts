/**
 * The nightly invoice run: it writes one invoice per order to a ledger. It may be killed at any time and started again on
 * any machine. Then it continues after the last invoice.
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
    // Before reading, so that no older run can write after it.
    ledger.advance(token)
    const done = new Set(ledger.invoices().map(({ order }) => order))
    const orders = readOrders()
    console.log(`token ${token}, ${done.size} of ${orders.length} invoiced`)
    for (const { id, customer, cents } of orders) {
      if (done.has(id)) continue
      await sleep(msPerOrder) // a real job would create and mail the invoice here
      ledger.write({ order: id, customer, cents, token })
      done.add(id)
      console.log(`${done.size} of ${orders.length}: ${id}, ${customer}, ${(cents / 100).toFixed(2)}`)
    }
    console.log('done')
    return 0
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    console.error(`refused: ${error.message}: a newer run took over, so this one stops`)
    return REFUSED
  } finally {
    ledger.close()
  }
}
