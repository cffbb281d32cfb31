import { expect } from 'vitest'
import type { Holder } from '../mark.ts'

/** What a holder of so high a token shows. */
export function holder(name: string, token: number | bigint): Holder {
  return { name, token: BigInt(token) }
}

/** The refusal of a token by a higher one. */
export function stale(token: bigint, highest: bigint): unknown {
  return expect.objectContaining({ code: 'STALE_TOKEN', token, highest })
}

/** A permit of this limit in these slots. */
export function permit(name: string, token: number, limit: number, ...slots: number[]): Holder {
  return { name, token: BigInt(token), limit, slots }
}

/** A reader in this slot. */
export function reader(name: string, token: number, slot: number): Holder {
  return permit(name, token, 2 ** 31 - 1, slot)
}

/** It holds alone, so it is a lease. */
export function writer(name: string, token: number): Holder {
  return holder(name, token)
}
