import { setTimeout as sleep } from 'node:timers/promises'
import type { Entry, Register } from '../cas/index.ts'
import type { Kv, NatsConsumer, NatsKvm } from './client.ts'
import { failure, isConflict, notFit, refuseOld } from './failure.ts'

/** What a record needs of a message besides its value: subject and headers. */
const OVERHEAD = 2_000

/** The limit of a message until the server has told it: its default. */
const PAYLOAD = 1_048_576

/** Days for which a bucket must keep records: the week of tokens, and the longest lease of 24.8 days. */
const DAYS = 32

/** Milliseconds until a watch that has ended is begun again. */
const PAUSE = 1_000

type Connection = NatsKvm['js']['nc']

interface Opened {
  readonly kvm: NatsKvm
  readonly kv: Kv
  /** Called after the connection was lost, and messages perhaps with it. */
  readonly onReconnect: Set<() => void>
}

/** The register of a bucket. It connects with the first request. */
export function registerOf(
  connect: () => Promise<NatsKvm>,
  bucket: string,
  close?: () => Promise<void>,
): Register<number> {
  let opening: Promise<Opened> | undefined
  let most = PAYLOAD

  async function open(): Promise<Opened> {
    const kvm = await connect()
    // The leader answers reads, whatever the bucket allows: `allow_direct` here lets replicas answer, which may lag.
    const kv = await kvm.open(bucket, { allow_direct: false })
    const { max_age: age = 0, max_msg_size: size = -1, discard } = (await kv.status()).streamInfo.config
    refuseOld(kvm) // after the first answer, when the client has connected
    if (age > 0 && age < DAYS * 86_400e9) throw notFit(bucket, `a ttl below ${DAYS} days`)
    if (discard === 'old') throw notFit(bucket, 'the policy to discard old records')
    const payload = kvm.js.nc.info?.max_payload ?? PAYLOAD
    most = size > 0 ? Math.min(size, payload) : payload
    return { kvm, kv, onReconnect: listenersOf(kvm.js.nc) }
  }

  /** Runs a request on the bucket. Its errors are those of leases. */
  async function using<Answer>(run: (opened: Opened) => Promise<Answer>): Promise<Answer> {
    try {
      opening ??= open()
      opening.catch(() => (opening = undefined))
      return await run(await opening)
    } catch (error) {
      throw failure(error, bucket)
    }
  }

  /** Writes unless the last message of the key, a record or the mark of a deletion, has another number. */
  async function put({ js }: NatsKvm, key: string, value: string, last: number): Promise<number | undefined> {
    const prefix = js.apiPrefix === '$JS.API' ? '' : `${js.apiPrefix}.` // that of a JetStream domain
    try {
      const options = { expect: { lastSubjectSequence: last } }
      return (await js.publish(`${prefix}$KV.${bucket}.${key}`, value, options)).seq
    } catch (error) {
      if (isConflict(error)) return undefined
      throw error
    }
  }

  return {
    get maxBytes() {
      return most - OVERHEAD
    },

    mayLag: true,

    isNewer: (version, other) => version > other,

    read: key =>
      using(async ({ kv }): Promise<Entry<number> | undefined> => {
        const found = await kv.get(key)
        return found?.operation === 'PUT' ? { value: found.string(), version: found.revision } : undefined
      }),

    write: (key, value, expected) =>
      using(async ({ kvm, kv }) => {
        const version = await put(kvm, key, value, expected ?? 0)
        if (version !== undefined || expected !== undefined) return version
        const found = await kv.get(key)
        return found && found.operation !== 'PUT' ? put(kvm, key, value, found.revision) : undefined
      }),

    // Not by `kv.keys()`: it waits for a last message, which never comes if that record is written again meanwhile.
    async *list(prefix, signal) {
      const { state } = await using(async ({ kvm }) => {
        const { streams } = await kvm.js.jetstreamManager(false)
        return streams.info(`KV_${bucket}`, { subjects_filter: `$KV.${bucket}.>` })
      })
      signal.throwIfAborted()
      for (const subject of Object.keys(state.subjects ?? {})) {
        const key = subject.slice(subject.lastIndexOf('.') + 1)
        if (key.startsWith(prefix)) yield { key }
      }
    },

    watch: (key, changed, signal) =>
      using(async ({ kvm, onReconnect }) => {
        // The last message comes first, so the client knows after which one to go on when it has lost its consumer.
        const options = { deliver_policy: 'last_per_subject', headers_only: true } as const
        // Not by `kv.watch()`, which leaves its consumer to the server for five minutes after each wait.
        const watch = (): Promise<NatsConsumer> =>
          kvm.js.consumers.getPushConsumer(`KV_${bucket}`, { filter_subjects: `$KV.${bucket}.${key}`, ...options })
        void follow(await watch(), watch, changed, signal)
        if (signal.aborted) return
        onReconnect.add(changed)
        signal.addEventListener('abort', () => onReconnect.delete(changed), { once: true })
      }),

    ...(close && { close }),
  }
}

/** Calls `changed` for each message, and begins again when a consumer has ended. */
async function follow(
  first: NatsConsumer,
  again: () => Promise<NatsConsumer>,
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  let consumer: NatsConsumer | undefined = first
  do {
    try {
      consumer ??= await again()
      const messages = await consumer.consume()
      const stop = (): void => messages.stop()
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      for await (const _ of messages) changed()
      signal.removeEventListener('abort', stop)
    } catch {
      // begun again below; until then the base looks as often as it keeps positions
    }
    await consumer?.delete().catch(() => {}) // else the server keeps it for five minutes
    consumer = undefined
    if (!signal.aborted) await sleep(PAUSE, undefined, { ref: false })
  } while (!signal.aborted)
}

/** The connection may outlive stores, and only its end ends what listens to its status. So all stores share that. */
const listening = new WeakMap<Connection, Set<() => void>>()

/** Functions that are called whenever the client has connected again, until the connection is closed. */
function listenersOf(connection: Connection): Set<() => void> {
  const known = listening.get(connection)
  if (known) return known
  const onReconnect = new Set<() => void>()
  listening.set(connection, onReconnect)
  void tell(connection, onReconnect)
  return onReconnect
}

async function tell(connection: Connection, onReconnect: ReadonlySet<() => void>): Promise<void> {
  for await (const { type } of connection.status())
    if (type === 'reconnect') for (const changed of onReconnect) changed()
}
