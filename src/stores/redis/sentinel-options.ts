import { invalid } from '../../contract/check.ts'

interface SentinelOptions {
  readonly sentinelRootNodes: readonly object[]
  readonly nodeClientOptions?: object
  readonly sentinelClientOptions?: object
}

/**
 * The options of a sentinel client of node-redis, which has them in a private field. Its `duplicate` passes them to the
 * constructor of its prototype (read in redis 6.3). Throws `INVALID_ARGUMENT` for a version that does otherwise.
 */
export function sentinelOptionsOf(client: object): SentinelOptions {
  let options: Partial<SentinelOptions> | undefined
  function take(given: SentinelOptions): void {
    options = given
  }
  const view = Object.create(Object.create(client, { constructor: { value: take } }))
  view.duplicate({})
  if (!options || !Array.isArray(options.sentinelRootNodes))
    throw invalid(
      'this version of a sentinel client of redis (node-redis) does not show its options: use redis 6.1 to 6.3',
    )
  return options as SentinelOptions
}
