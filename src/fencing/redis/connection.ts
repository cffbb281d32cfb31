import { LeaseError } from '../../contract/errors.ts'
import { openWire, type RedisDriver, type Wire } from '../../stores/redis/client.ts'
import { Failures } from '../../stores/redis/failure.ts'
import { scan } from '../../stores/redis/scan.ts'
import { evaluate } from '../../stores/redis/script.ts'
import { Connections } from '../../stores/wire/connections.ts'
import type { Script } from './script.ts'

/** The fence's own connection. The first request opens it. */
export class Connection {
  readonly #connections: Connections<Wire>
  /** The hashes of the scripts that the server is known to have. */
  readonly #loaded = new WeakMap<Wire, Set<string>>()

  constructor(driver: RedisDriver) {
    const failures = new Failures(driver)
    this.#connections = new Connections<Wire>({
      open: async closing => {
        const wire = await openWire(driver, async opened => void (await opened.call(['TIME'])), closing)
        failures.served = true
        this.#loaded.set(wire, new Set())
        return wire
      },
      failure: (error, wire) =>
        isUnreadable(error) ? scriptFailed((error as Error).message) : failures.of(error, wire),
      judge: (error, wire) => (isUnreadable(error) ? 'keep' : failures.judge(error, wire)),
    })
  }

  /** Runs a script. Rejects with a `LeaseError`, at the latest 5 s after the connection was open. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#connections.run(wire => evaluate(wire, this.#loaded.get(wire) ?? new Set(), script, keys, args))
  }

  /** Finds all matching keys. */
  async scan(pattern: string): Promise<string[]> {
    const found = new Set<string>()
    for await (const page of scan(work => this.#connections.run(work), pattern)) for (const key of page) found.add(key)
    return [...found].sort()
  }

  close(): void {
    this.#connections.close()
  }
}

/** Is it an error of Lua that does not compile? The server did answer, and a retry is useless. */
function isUnreadable(error: unknown): boolean {
  return /Error compiling script/.test(String(error))
}

/** The error of the caller's script, with the text of Redis. */
export function scriptFailed(text: string): LeaseError {
  if (/\b(OOM|READONLY|NOREPLICAS|MISCONF)\b/.test(text))
    return new LeaseError('STORE_UNAVAILABLE', `Redis cannot run the script now: ${text}`)
  if (/\bNOPERM\b|ACL failure|can't run this command|can't access/.test(text))
    return new LeaseError('ACCESS_DENIED', `the Redis user may not do what the script does: ${text}`)
  return new LeaseError('INVALID_ARGUMENT', `the script failed, so correct it: ${text}`)
}
