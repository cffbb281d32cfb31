/** Runs `work`, and closes what it uses afterwards, or when `signal` aborts, so that requests in flight reject. */
export async function whileOpen<Result>(
  opened: { close(): void },
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const close = (): void => opened.close()
  signal.addEventListener('abort', close)
  try {
    return await work()
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}
