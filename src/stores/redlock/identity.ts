import { invalid } from '../../contract/check.ts'
import { fields } from '../redis/info.ts'

/** What a server says of itself. */
export interface Identity {
  /** New at each start. */
  readonly runId: string
  /** Seconds since its start. */
  readonly uptime: number
  /** Of the data that it has now, and had when it was another's replica. */
  readonly histories: readonly string[]
}

const NONE = /^0*$/

/** Throws `INVALID_ARGUMENT` for a server that decides nothing by itself. */
export function identityOf(info: string): Identity {
  const { run_id, uptime_in_seconds, role, redis_mode, server_mode, master_host, master_port, ...rest } = fields(info)
  if (role !== 'master')
    throw invalid(`it is a replica of ${master_host}:${master_port}: a majority needs independent masters`)
  // Valkey reports its mode as `server_mode`.
  if ((redis_mode ?? server_mode) === 'cluster')
    throw invalid(
      'it is a node of a Redis Cluster: a majority needs independent servers without replicas that take over',
    )
  const histories = [rest.master_replid ?? '', rest.master_replid2 ?? ''].filter(id => !NONE.test(id))
  return { runId: run_id ?? '', uptime: Number(uptime_in_seconds), histories }
}

/** The servers of one store, none of which may be another one. */
export class Identities {
  readonly #known = new Map<{ readonly name: string }, Identity>()

  /** Throws `INVALID_ARGUMENT` if the server of `member` is that of another, or has copied its data. */
  admit(member: { readonly name: string }, identity: Identity): void {
    for (const [other, { runId, histories }] of this.#known) {
      if (other === member) continue
      if (runId === identity.runId)
        throw invalid(`it is the same server as ${other.name} (run_id ${runId}): a majority needs independent servers`)
      if (histories.some(history => identity.histories.includes(history)))
        throw invalid(
          `it has copied its data from ${other.name}, or that from it: a majority needs independent servers`,
        )
    }
    this.#known.set(member, identity)
  }
}
