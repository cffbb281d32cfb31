import { invalid } from '../../contract/check.ts'
import { fields } from '../redis/info.ts'

/** The identity of a server, from its `INFO`. */
export interface Identity {
  /** The id of this run of the server, which is new at each start. */
  readonly runId: string
  /** The seconds since its start. */
  readonly uptime: number
  /** The replication ids of its current data, and of the data that it had as a replica. */
  readonly histories: readonly string[]
}

const NONE = /^0*$/

/** Parses `INFO`. Throws `INVALID_ARGUMENT` for a server that is not an independent master. */
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

/** Detects two clients that reach the same server. */
export class Identities {
  readonly #known = new Map<{ readonly name: string }, Identity>()

  /** Throws `INVALID_ARGUMENT` if the server of `member` is also that of another member, or has copied its data. */
  admit(member: { readonly name: string }, identity: Identity): void {
    for (const [other, { runId, histories }] of this.#known) {
      if (other === member) continue
      if (runId === identity.runId)
        throw invalid(`it is the same server as ${other.name} (run_id ${runId}): a majority needs independent servers`)
      if (histories.some(history => identity.histories.includes(history)))
        throw invalid(
          `it and ${other.name} have data copied from one to the other: a majority needs independent servers`,
        )
    }
    this.#known.set(member, identity)
  }
}
