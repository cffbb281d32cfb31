import { checkText, invalid, show } from '../../contract/check.ts'
import type { MinTtl } from '../url/min-ttl.ts'

/** A record, or the mark of a deletion. */
export interface KvEntry {
  readonly revision: number
  readonly operation: string
  string(): string
}

/** The settings of the stream of a bucket that leases depend on. */
interface StreamConfig {
  readonly max_age?: number
  readonly max_msg_size?: number
  readonly discard?: string
  readonly storage?: string
  readonly num_replicas?: number
}

/** The part of a bucket that leases need. */
export interface Kv {
  get(key: string): Promise<KvEntry | null>
  purge(key: string): Promise<void>
  status(): Promise<{ readonly streamInfo: { readonly config: StreamConfig } }>
}

/** What a server tells about itself. */
interface Info {
  readonly max_payload: number
  readonly version: string
  readonly cluster?: string | undefined
}

/** What receives the messages of a key, and the server's part of it. */
export interface NatsConsumer {
  consume(): Promise<AsyncIterable<unknown> & { stop(): void }>
  delete(): Promise<boolean>
}

/** What lists the keys of a bucket: the subjects of its stream. */
interface Streams {
  info(
    stream: string,
    options: { subjects_filter: string },
  ): Promise<{ readonly state: { readonly subjects?: Readonly<Record<string, number>> | undefined } }>
}

/** The part of the class `Kvm` of `@nats-io/kv` 3 that leases need. */
export interface NatsKvm {
  readonly js: {
    readonly apiPrefix: string
    readonly nc: {
      readonly info?: Info | undefined
      status(): AsyncIterable<{ readonly type: string }>
    }
    readonly consumers: {
      getPushConsumer(
        stream: string,
        options: { filter_subjects: string; deliver_policy: 'last_per_subject'; headers_only: boolean },
      ): Promise<NatsConsumer>
    }
    jetstreamManager(checkAPI: boolean): Promise<{ readonly streams: Streams }>
    publish(
      subject: string,
      value: string,
      options: { expect: { lastSubjectSequence: number } },
    ): Promise<{ readonly seq: number }>
  }
  open(bucket: string, options: { allow_direct: boolean }): Promise<Kv>
  create(bucket: string, options: { replicas: number; allow_direct: boolean }): Promise<Kv>
}

export interface NatsOptions extends MinTtl {
  /** The bucket in which leases are stored. @default 'holdfast' */
  readonly bucket?: string | undefined
}

/** Throws `INVALID_ARGUMENT` for a name that no bucket can have. */
export function bucketOf({ bucket = 'holdfast' }: NatsOptions): string {
  checkText(bucket, 'the bucket')
  if (/^[\w-]{1,100}$/.test(bucket)) return bucket
  throw invalid(`the bucket must be 1 to 100 of a-z, A-Z, 0-9, _ and -: not ${show(bucket)}`)
}

/** Throws `INVALID_ARGUMENT` for another client, such as a connection or a bucket. */
export function checkKvm(kvm: unknown, what: string): asserts kvm is NatsKvm {
  const found = Object(kvm) as Partial<NatsKvm>
  const isKvm = typeof found.open === 'function' && typeof found.create === 'function'
  if (isKvm && typeof found.js?.publish === 'function' && found.js.nc) return
  const given = found.constructor?.name ?? typeof kvm
  throw invalid(`${what} needs a Kvm of @nats-io/kv 3, such as new Kvm(await connect()), not ${given}`)
}

/** Is this version of nats-server 2.10 or later? */
export function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 2 || (major === 2 && minor >= 10)
}
