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
