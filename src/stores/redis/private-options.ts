import { invalid } from '../../contract/check.ts'

interface SentinelOptions {
  readonly sentinelRootNodes: readonly object[]
  readonly nodeClientOptions?: object
  readonly sentinelClientOptions?: object
}

/**
 * Reads a field that the caller's client does not make public, as it is in `versions`. Throws `INVALID_ARGUMENT` if the
 * client does not have it: without the option, processes with the same options would not exclude each other.
 * docs/reference/clients.md lists all such fields.
 */
export function readPrivate(client: object, field: string, versions: string): unknown {
  if (field in client) return (client as Record<string, unknown>)[field]
  throw hidden(field, versions)
}

/**
 * The options of a sentinel client of node-redis, which are in a private field. Its `duplicate` passes them to the
 * constructor of its prototype. Throws `INVALID_ARGUMENT` for a version that works differently.
 */
export function sentinelOptionsOf(client: object): SentinelOptions {
  let options: Partial<SentinelOptions> | undefined
  function take(given: SentinelOptions): void {
    options = given
  }
  const view = Object.create(Object.create(client, { constructor: { value: take } }))
  view.duplicate({})
  if (options && Array.isArray(options.sentinelRootNodes)) return options as SentinelOptions
  throw hidden('#options', 'redis 6.1 to 6.3')
}

function hidden(field: string, versions: string): Error {
  return invalid(
    `this version of the client does not show its options: its field ${field} is missing; use ${versions}, or another client`,
  )
}
