import { hidden, SENTINEL_OPTIONS } from '../shared/private-fields.ts'

interface SentinelOptions {
  readonly sentinelRootNodes: readonly object[]
  readonly nodeClientOptions?: object
  readonly sentinelClientOptions?: object
}

/**
 * The options of a sentinel client of node-redis, which has them in a private field. Its `duplicate` passes them to the
 * constructor of its prototype. Throws `INVALID_ARGUMENT` for a version that does otherwise.
 */
export function sentinelOptionsOf(client: object): SentinelOptions {
  let options: Partial<SentinelOptions> | undefined
  function take(given: SentinelOptions): void {
    options = given
  }
  const view = Object.create(Object.create(client, { constructor: { value: take } }))
  view.duplicate({})
  if (!options || !Array.isArray(options.sentinelRootNodes)) throw hidden(SENTINEL_OPTIONS)
  return options as SentinelOptions
}
