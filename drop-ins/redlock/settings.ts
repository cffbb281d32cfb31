import type { AlongsideSettings, StoreSettings } from '../shared/clients.ts'

export interface Settings {
  /** Share of the duration that is subtracted for clock drift, in addition to 2 ms. At least 0.01. @default 0.01 */
  readonly driftFactor?: number
  /** With `retryDelay`, how long to wait for a locked resource: their product in ms. -1 and Infinity have no limit. @default 10 */
  readonly retryCount?: number
  /** Milliseconds. @default 200 */
  readonly retryDelay?: number
  /** Has no effect: waiters are notified, and do not poll. @default 100 */
  readonly retryJitter?: number
  /** `using` refuses a duration that is not at least 100 ms longer. Otherwise it has no effect. @default 500 */
  readonly automaticExtensionThreshold?: number
  /** The database, 0 to 15. Needs clients of ioredis or iovalkey. @default the one that the client has selected */
  readonly db?: number
}

/** The settings of a `Redlock`; those of the store come from Holdfast. */
export type RedlockSettings = Settings & StoreSettings & AlongsideSettings

const DEFAULTS: Required<Settings> = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
  db: 0,
}

/** An attempt is an object, and some programs retry a million times. */
const MOST_RETRIES = 1_000

/** Values that are not numbers count as absent. */
export function settingsOf(settings: Settings, defaults: Required<Settings> = DEFAULTS): Required<Settings> {
  const known = Object.keys(DEFAULTS) as (keyof Settings)[]
  const given = known.filter(key => typeof settings[key] === 'number').map(key => [key, settings[key]])
  const merged: Required<Settings> = { ...defaults, ...Object.fromEntries(given) }
  return { ...merged, db: isDatabase(merged.db) ? merged.db : DEFAULTS.db }
}

/** The database, if the settings state a valid one. */
export function databaseOf({ db }: Settings): number | undefined {
  return isDatabase(db) ? db : undefined
}

/** Milliseconds to wait for a locked resource. */
export function waitOf({ retryCount, retryDelay }: Required<Settings>): number {
  if (retryCount === -1 || retryCount === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
  return retryCount > 0 ? Math.max(retryCount * retryDelay, 1) : 0
}

/** Attempts that are reported in addition to the first. */
export function retriesOf({ retryCount }: Required<Settings>): number {
  return Number.isInteger(retryCount) && retryCount > 0 ? Math.min(retryCount, MOST_RETRIES) : 0
}

function isDatabase(db: unknown): db is number {
  return Number.isInteger(db) && (db as number) >= 0 && (db as number) <= 15
}
