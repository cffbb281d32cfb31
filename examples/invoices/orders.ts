import { readFileSync } from 'node:fs'

export interface Order {
  readonly id: string
  readonly customer: string
  readonly cents: number
}

/** The orders in orders.csv: order,date,customer,item,quantity,unit_price. */
export function readOrders(): Order[] {
  const [, ...lines] = readFileSync(new URL('orders.csv', import.meta.url), 'utf8')
    .trim()
    .split('\n')
  return lines.map(line => {
    const [id = '', , customer = '', , quantity, price] = line.split(',')
    return { id, customer, cents: Math.round(Number(quantity) * Number(price) * 100) }
  })
}
