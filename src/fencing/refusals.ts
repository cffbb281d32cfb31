import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'

/** The meaning of an engine's error for a fence. */
export type Refusal = readonly [code: LeaseErrorCode, text: string]

const INSTALL = 'run holdfast migrate --fence or what holdfast fence sql prints, or call fence.install()'

/** The table of marks does not exist. */
export const missing = (table: string, cure: string = INSTALL): Refusal => [
  'NOT_MIGRATED',
  `the table ${table} is missing: ${cure}`,
]

/** The table of marks belongs to another version or another program. */
export const otherColumns = (table: string): Refusal => [
  'FORMAT_MISMATCH',
  `the table ${table} has other columns: use the same version of Holdfast everywhere, or give the option table`,
]

/** The server ended a transaction because of another one. */
export const CONFLICT: Refusal = [
  'STORE_UNAVAILABLE',
  'another transaction was in the way: roll back, and repeat this one as a whole',
]

/** The error for the caller, with the text of the engine. */
export function refused([code, text]: Refusal, error: unknown, cause: unknown = error): LeaseError {
  return new LeaseError(code, `${text} (${(error as Error).message})`, { cause })
}
