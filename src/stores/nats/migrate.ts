import { bucketOf, checkKvm, type NatsKvm } from './client.ts'
import { failure, refuseOld } from './failure.ts'

export interface Creation {
  /** The bucket. @default 'holdfast' */
  readonly bucket?: string | undefined
  /** The number of servers that keep the bucket: 1, 3 or 5. @default 3 in a cluster, else 1 */
  readonly replicas?: number | undefined
}

/** Creates the bucket if it is missing. Rejects `ACCESS_DENIED`, `STORE_UNAVAILABLE` and `OUTCOME_UNKNOWN`. */
export async function migrate(kvm: NatsKvm, options: Creation = {}): Promise<void> {
  const bucket = bucketOf(options)
  checkKvm(kvm, 'migrate(kvm)')
  try {
    await kvm.js.jetstreamManager(true) // after an answer the client knows the server
    refuseOld(kvm)
    const { replicas = kvm.js.nc.info?.cluster ? 3 : 1 } = options
    await kvm.create(bucket, { replicas, allow_direct: false })
  } catch (error) {
    throw failure(error, bucket)
  }
}
