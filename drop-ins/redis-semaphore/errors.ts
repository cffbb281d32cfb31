/** The lock was lost: another may hold it. `cause` is the error of Holdfast. */
export class LostLockError extends Error {}

/** The lock was not acquired within `acquireTimeout`. */
export class TimeoutError extends Error {}
