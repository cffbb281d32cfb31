/** What the gateway answers, as far as it is read. Numbers of 64 bits are strings; what is 0 or false is left out. */
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
  readonly kvs?: readonly KeyValue[]
  readonly more?: boolean
  readonly count?: string
}

export interface TxnAnswer {
  readonly header: Header
  readonly succeeded?: boolean
  readonly responses?: readonly {
    readonly response_range?: RangeAnswer
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
