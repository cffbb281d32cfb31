/** The parts of the gateway's answers that are used. 64-bit numbers are strings. Fields that are 0 or false are missing. */
export interface Header {
  readonly revision: string
  readonly raft_term: string
}

export interface KeyValue {
  readonly key: string
  readonly value?: string
  readonly create_revision: string
  readonly mod_revision: string
  readonly lease?: string
}

export interface RangeAnswer {
  readonly header: Header
  readonly kvs?: readonly KeyValue[]
  readonly more?: boolean
  readonly count?: string
}

export interface TxnAnswer {
  readonly header: Header
  /** May an earlier copy of the request have been processed, or still be? This field does not come from etcd. */
  readonly isRepeated?: boolean | undefined
  readonly succeeded?: boolean
  readonly responses?: readonly {
    readonly response_range?: Omit<RangeAnswer, 'header'>
    readonly response_txn?: Pick<TxnAnswer, 'succeeded' | 'responses'>
  }[]
}

export interface LeaseAnswer {
  readonly header: Header
  readonly ID: string
  readonly TTL?: string
}

export interface WatchAnswer {
  readonly header: Header
  readonly created?: boolean
  readonly canceled?: boolean
  readonly compact_revision?: string
  readonly events?: readonly { readonly type?: 'DELETE'; readonly kv: KeyValue }[]
}

/** The parts of a transaction that determine the shape of its answer. */
interface Txn {
  readonly success?: readonly Operation[]
  readonly failure?: readonly Operation[]
}

interface Operation {
  readonly request_range?: object
  readonly request_txn?: object
}

type Unknown = { readonly [name: string]: unknown } | undefined | null

const digits = /^\d+$/

export function hasHeader(message: unknown): boolean {
  const header = (message as Unknown)?.header as Unknown
  return [header?.revision, header?.raft_term].every(isNumber)
}

export function isRange(message: unknown): boolean {
  const { kvs = [], count = '0' } = Object(message) as { kvs?: unknown; count?: unknown }
  return isNumber(count) && Array.isArray(kvs) && kvs.every(isKeyValue)
}

/** Does the message answer each operation of the transaction? A missing answer would look like a missing key. */
export function isAnswerTo(txn: object, message: unknown): boolean {
  const { success = [], failure = [] } = txn as Txn
  const { succeeded = false, responses = [] } = Object(message) as { succeeded?: unknown; responses?: unknown }
  const asked = succeeded ? success : failure
  if (typeof succeeded !== 'boolean' || !Array.isArray(responses) || responses.length !== asked.length) return false
  return asked.every(({ request_range, request_txn }, index) => {
    const { response_range, response_txn } = Object(responses[index]) as Record<string, unknown>
    if (request_txn) return response_txn !== undefined && isAnswerTo(request_txn, response_txn)
    return !request_range || (response_range !== undefined && isRange(response_range))
  })
}

function isKeyValue(found: Unknown): boolean {
  const { key, value = '', create_revision, mod_revision, lease = '0' } = Object(found) as Record<string, unknown>
  return typeof key === 'string' && typeof value === 'string' && [create_revision, mod_revision, lease].every(isNumber)
}

function isNumber(value: unknown): boolean {
  return typeof value === 'string' && digits.test(value)
}
