import type { Redis } from 'ioredis'

const WEEK = 604_800_000

/** Milliseconds since 1970, by the clock of the server. */
export async function serverTime(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
}

/** What a script answers, and all that the server keeps then. Times are relative to that of the answer. */
export async function outcome(
  client: Redis,
  source: string,
  keys: readonly string[],
  args: readonly string[],
): Promise<{ reply: unknown; kept: Readonly<Record<string, unknown>> }> {
  const reply = await client.eval(source, keys.length, ...keys, ...args).catch(String)
  const [head, ...answers] = Array.isArray(reply) ? reply : String(reply).split('\n')
  const now = Number.parseInt(String(head), 10)
  const seconds = (ms: number | string): number => Math.round((Number(ms) - now) / 1_000)
  const relative = (text: unknown): string =>
    String(text)
      .replace(/^-\d{1,9}(?= )/, remaining => `${seconds(now - Number(remaining))} s left`)
      .replaceAll(/\b(\d{13})(\d{3})?\b/g, (digits, ms: string, micros?: string) => {
        if (!micros) return `NOW+${seconds(ms)}`
        return Math.abs(seconds(ms)) < 60 ? `CLOCK+${seconds(ms)}` : digits
      })
  const kept: Record<string, unknown> = {}
  for (const key of (await client.keys('*')).sort()) {
    const type = await client.type(key)
    const value = { string: () => client.get(key), hash: () => client.hgetall(key) }[type]
    kept[key] = relative(JSON.stringify(value ? await value() : (await client.zrange(key, '0', '-1')).sort()))
    const life = await client.pttl(key)
    // That of a token which is ahead of the clock ends when the clock is there.
    kept[`life of ${key}`] = life > WEEK ? `until ${Math.round((now + life) / 1_000)}` : Math.round(life / 1_000)
  }
  return {
    reply: Number.isNaN(now) ? relative(reply).replace(/\b[0-9a-f]{40}\b/, 'SCRIPT') : answers.map(relative),
    kept,
  }
}
