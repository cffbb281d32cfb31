import { LeaseError } from '../../contract/errors.ts'
import { type Driver, type Link, openLink } from '../../stores/redis/client.ts'
import { failure, isReply } from '../../stores/redis/failure.ts'
import { Connection as Shared, Silence } from '../../stores/shared/connection.ts'
import type { Script } from './script.ts'

interface Session {
  readonly link: Link
  /** Of the scripts that the server has, as far as is known. */
  readonly loaded: Set<string>
}

/** The connection of a fence's own, opened by the first request that finds none. */
export class Connection {
  readonly #shared: Shared<Session>

  constructor(driver: Driver) {
    let served = false
    this.#shared = new Shared<Session>({
      async open(closing) {
        const link = await openLink(driver, async opened => void (await opened.call(['TIME'])), closing)
        served = true
        return { link, loaded: new Set() }
      },
      failure: (error, session) => {
        if (isUnreadable(error)) return scriptFailed((error as Error).message)
        const reason = (!isReply(error) && session?.link.failure()) || error
        return failure(reason, { sent: session !== undefined, served, isCluster: driver.isCluster })
      },
      judge: (error, { link }) => {
        if (isUnreadable(error)) return 'keep'
        if (!driver.isCluster && (error instanceof Silence || /READONLY/.test(String(error)))) return 'retire'
        return !isReply(error) && link.isOpen() ? 'replace' : 'keep'
      },
    })
  }

  /** Rejects with a `LeaseError`, after 5 s at the latest. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args]
    return this.#shared.carryOut(async ({ link, loaded }) => {
      const load = async (): Promise<unknown> => {
        const answer = await link.call(['eval', script.source, ...rest], keys[0])
        loaded.add(script.sha)
        return answer
      }
      if (!loaded.has(script.sha)) return load()
      return link.call(['evalsha', script.sha, ...rest], keys[0]).catch(error => {
        if (!/NOSCRIPT|NoScript/.test(String(error))) throw error
        return load()
      })
    })
  }

  /** All keys that match, of a cluster at all its nodes; a request for each thousand keys that there are. */
  async scan(pattern: string): Promise<string[]> {
    const found = new Set<string>()
    for (let node = 0, cursor = '0'; ; ) {
      const answer = await this.#shared.carryOut(async ({ link }) => {
        const send = (await link.masters())[node]
        return send?.(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'])
      })
      if (answer === undefined) return [...found].sort()
      const [next, page] = answer as [unknown, unknown[]]
      for (const key of page) found.add(String(key))
      cursor = String(next)
      if (cursor === '0') node += 1
    }
  }

  get(key: string): Promise<unknown> {
    return this.#shared.carryOut(({ link }) => link.call(['GET', key], key))
  }

  close(): void {
    this.#shared.close()
  }
}

/** Lua that cannot be read: the server answered, and asking again is useless. */
function isUnreadable(error: unknown): boolean {
  return /Error compiling script/.test(String(error))
}

/** What a script of the caller's failed with, in the words of Redis. */
export function scriptFailed(text: string): LeaseError {
  const passing = /\b(OOM|READONLY|NOREPLICAS|MISCONF)\b/.test(text)
  return new LeaseError(
    passing ? 'STORE_UNAVAILABLE' : 'INVALID_ARGUMENT',
    `Redis could not carry out the script: ${text}`,
  )
}
