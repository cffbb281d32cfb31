/** How clients share a name: up to `limit` permits, or readers and writers. */
export type Shared = { readonly kind: 'semaphore'; readonly limit: number } | { readonly kind: 'readWrite' }

/** What a client asks for. A reader never runs beside a writer. */
export type Role = 'permit' | 'reader' | 'writer'

/** A slot that a permit holds. The token is a decimal string. */
export interface Mark {
  readonly slot: number
  readonly token: string
}

/** How a slot is named in results. It has one holder at a time. */
export function slotKey(name: string, slot: number): string {
  return `${name}, slot ${slot}`
}
