/** Did the fence refuse the transaction? Each library wraps the error of PostgreSQL in its own way. */
export function isStale(error: unknown): boolean {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code, meta } = at as { code?: unknown; meta?: { driverAdapterError?: unknown } }
    if (code === 'HF412' || isStale(meta?.driverAdapterError)) return true
  }
  return false
}
