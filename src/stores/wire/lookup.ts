import { ADDRCONFIG, type LookupAddress, lookup as lookUp } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { LONGEST_REQUEST } from '../../contract/time.ts'

/** Look-ups that have not settled, by host. */
const pending = new Map<string, Promise<LookupAddress[]>>()

/** The times when the addresses of a host were last given, by `performance.now()`. */
const given = new Map<string, number>()

/**
 * The option `lookup` of `net.connect`. It is `dns.lookup`, but with one pending look-up for each host in the process. A
 * look-up cannot be cancelled, and occupies one of two threads until the name server answers, or for 10 s and more. With
 * one look-up for each attempt to connect, look-ups of other code would have to wait.
 */
export const lookup: LookupFunction = (host, { all, family }, callback) => {
  const version = Number(String(family ?? 0).replace('IPv', ''))
  const answer = (addresses: LookupAddress[]): void => {
    const [first, ...others] = inTurn(
      host,
      addresses.filter(address => version === 0 || address.family === version),
    )
    if (!first) callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), '')
    else if (all) callback(null, [first, ...others])
    else callback(null, first.address, first.family)
  }
  addressesOf(host).then(answer, error => callback(error, ''))
}

/**
 * Resolves once a look-up of the host has succeeded, and rejects like the look-up. It is for clients that take no `lookup`.
 */
export async function lookedUp(host: string = 'localhost'): Promise<void> {
  await addressesOf(host)
}

function addressesOf(host: string): Promise<LookupAddress[]> {
  let addresses = pending.get(host)
  if (!addresses) {
    addresses = new Promise((resolve, reject) => {
      // These are the hints of `net.connect`.
      lookUp(host, { hints: ADDRCONFIG, all: true }, (error, found) => {
        pending.delete(host)
        if (error) reject(error)
        else resolve(found)
      })
    })
    pending.set(host, addresses)
  }
  return addresses
}

/**
 * The addresses in the order to try. If the host was looked up recently, another address comes first, because the first one
 * may accept connections and hang.
 */
function inTurn(host: string, addresses: LookupAddress[]): LookupAddress[] {
  const now = performance.now()
  const isAgain = now - (given.get(host) ?? Number.NEGATIVE_INFINITY) < LONGEST_REQUEST
  given.set(host, now)
  const first = isAgain ? Math.floor(Math.random() * addresses.length) : 0
  return [...addresses.slice(first), ...addresses.slice(0, first)]
}
