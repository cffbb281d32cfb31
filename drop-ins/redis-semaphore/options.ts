import { randomUUID } from 'node:crypto'

export interface TimeoutOptions {
  /** Milliseconds after which the lock of a dead holder ends. @default 10,000 */
  lockTimeout?: number | undefined
  /** Milliseconds to wait for the lock. @default 10,000 */
  acquireTimeout?: number | undefined
  /** Less one, times `retryInterval`, it limits the wait as well. 1 does not wait. @default Infinity */
  acquireAttemptsLimit?: number | undefined
  /** Milliseconds. See `acquireAttemptsLimit`. @default 10 */
  retryInterval?: number | undefined
  /** 0: the lock is not renewed. Any other value: at a third of `lockTimeout`. @default 0.8 of `lockTimeout` */
  refreshInterval?: number | undefined
}

/** Whose lock it is. */
export interface Identity {
  /** Shown as the note of the lease. It decides nothing. @default a random UUID */
  identifier?: string | undefined
  /** Is appended to the random identifier. */
  identifierSuffix?: string | undefined
  /** Refused: two processes would hold one lease with one token. */
  acquiredExternally?: true | undefined
  /** Refused, as `acquiredExternally`. */
  externallyAcquiredIdentifier?: string | undefined
}

export const defaultTimeoutOptions: {
  lockTimeout: number
  acquireTimeout: number
  acquireAttemptsLimit: number
  retryInterval: number
} = {
  lockTimeout: 10_000,
  acquireTimeout: 10_000,
  acquireAttemptsLimit: Number.POSITIVE_INFINITY,
  retryInterval: 10,
}

/** The identifier of a lock. Throws for options that cannot be used. */
export function identifierOf(options: Identity): string {
  const { identifier, identifierSuffix, acquiredExternally, externallyAcquiredIdentifier } = options
  if (identifier !== undefined && (!identifier || typeof identifier !== 'string'))
    throw new Error('identifier must be not empty random string')
  if (acquiredExternally && !identifier) throw new Error('acquiredExternally=true meanless without custom identifier')
  if (acquiredExternally || externallyAcquiredIdentifier)
    throw new Error(
      'acquiredExternally is not supported: two processes would hold one lease with one fencing token, and neither ' +
        'could know whether the other still works. Acquire the lock in the process that does the work',
    )
  return identifier ?? (identifierSuffix ? `${randomUUID()}-${identifierSuffix}` : randomUUID())
}

/** Milliseconds to wait. `undefined`: the options allow no attempt at all. */
export function waitOf(options: TimeoutOptions): number | undefined {
  const { acquireTimeout, acquireAttemptsLimit, retryInterval } = { ...defaultTimeoutOptions, ...defined(options) }
  if (!(acquireTimeout > 0) || !(acquireAttemptsLimit >= 1)) return undefined
  const attempts = (Math.floor(acquireAttemptsLimit) - 1) * retryInterval
  return Number.isNaN(attempts) ? acquireTimeout : Math.min(acquireTimeout, attempts)
}

/** Without the properties that are `undefined`. */
function defined<T extends object>(options: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}
