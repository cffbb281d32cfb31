export interface Order {
  readonly id: string
  readonly customer: string
  readonly cents: number
}

const CUSTOMERS = ['Juniper Florist', 'Maple Clinic', 'Linden School', 'Pelican Hotel', 'Quarry Bakery']
const PRICES = [6_240, 280, 1_995, 12_900]

/** Sixty orders, the same ones each time. */
export function readOrders(): Order[] {
  return Array.from({ length: 60 }, (_, index) => {
    const customer = CUSTOMERS[index % CUSTOMERS.length] as string
    const price = PRICES[index % PRICES.length] as number
    return { id: `A-${1_001 + index}`, customer, cents: price * ((index % 7) + 1) }
  })
}
