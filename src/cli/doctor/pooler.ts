import type { PostgresConnection, PostgresDriver } from '../../stores/postgres/connection.ts'
import { openConnection } from '../../stores/wire/connection.ts'
import { type Finding, ok, warning } from './finding.ts'
import { whileOpen } from './while-open.ts'

const ID = 'postgres-pooler'

/** Milliseconds for finding out the mode. In session mode a second connection may wait for a free one. */
const PATIENCE = 2_000

/** The number of times that two connections ask in turn which server process answers. */
const ROUNDS = 5

const PID = 'select pg_backend_pid()::text, $0'

export function direct(): Finding {
  return ok(ID, 'notifications have a direct connection')
}

/** The finding for a connection that goes through a pooler. */
export async function pooled(driver: PostgresDriver, first: PostgresConnection, stop: AbortSignal): Promise<Finding> {
  const mode = await modeOf(driver, first, stop).catch(() => 'in an unknown mode')
  const why = 'no pooler passes notifications on to waiters, which then ask repeatedly'
  return warning(ID, `the connection goes through a pooler ${mode}`, why, 'add ?direct=URL of the server')
}

/** Finds the pooler's mode by what it does, because a pooler does not report its mode. */
async function modeOf(driver: PostgresDriver, first: PostgresConnection, stop: AbortSignal): Promise<string> {
  const limit = AbortSignal.any([stop, AbortSignal.timeout(PATIENCE)])
  const second = await openConnection(driver, async () => {}, limit)
  return whileOpen(second, limit, async () => {
    const [ofFirst, ofSecond] = [new Set<unknown>(), new Set<unknown>()]
    for (let round = 0; round < ROUNDS; round += 1) {
      ofFirst.add(await first.askInTime(PID))
      ofSecond.add(await second.askInTime(PID))
    }
    const isShared = ofFirst.size > 1 || ofSecond.size > 1 || [...ofFirst].some(pid => ofSecond.has(pid))
    if (await refusesTransactions(second)) return 'in statement mode'
    return isShared ? 'in transaction mode' : 'that seems to be in session mode'
  })
}

async function refusesTransactions(connection: PostgresConnection): Promise<boolean> {
  try {
    await connection.ask('begin; select 1, $0')
    await connection.ask('rollback; select 1, $0')
    return false
  } catch (error) {
    if (/statement pooling mode/i.test(String(error))) return true
    throw error
  }
}
