import { bucketOf, checkKvm, isSince, type NatsKvm } from './client.ts'
import { failure } from './failure.ts'

export interface Creation {
  /** The bucket. @default 'holdfast' */
  readonly bucket?: string | undefined
  /** The number of servers that keep the bucket: 1, 3 or 5. @default 3 in a cluster, else 1 */
  readonly replicas?: number | undefined
}

/**
 * Milliseconds for which a server before 2.10 knows the id of a write; by default two minutes. A leader that loses a write
 * probably refuses others that follow the same record for so long: in the fault lab a name was free for up to 117 s. Of
 * writes that are further apart the later one may overwrite the earlier, whose answer must no longer count by then: no
 * request lasts longer than 5 s (`LONGEST_REQUEST`).
 */
const WINDOW = 30_000

/** Creates the bucket if it is missing. Rejects `ACCESS_DENIED` and `STORE_UNAVAILABLE`. */
export async function migrate(kvm: NatsKvm, options: Creation = {}): Promise<void> {
  const bucket = bucketOf(options)
  checkKvm(kvm, 'migrate(kvm)')
  const { replicas = kvm.js.nc.info?.cluster ? 3 : 1 } = options
  try {
    await kvm.create(bucket, { replicas, allow_direct: false })
    if (isSince(10, kvm.js.nc.info?.version)) return // no message ids are sent
    const { streams } = await kvm.js.jetstreamManager(false)
    await streams.update(`KV_${bucket}`, { duplicate_window: WINDOW * 1e6 })
  } catch (error) {
    throw failure(error, bucket)
  }
}
