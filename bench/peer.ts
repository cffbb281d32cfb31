import type { Election } from '../src/index.ts'

/** Where a peer finds its servers. */
export interface Place {
  readonly host: string
  /** Of the one server, or of each where there are several. */
  readonly ports: readonly number[]
  /** An empty folder, for what is kept in files. */
  readonly folder: string
}

/** A library, or a raw floor, as the scenarios see it. One file in `peers/` exports one as `peer`. */
export interface Peer {
  /** As tables and charts call it, with its version. */
  readonly label: string
  /** What it can be measured at, in addition to pairs; `held` is a lease that is renewed until it is released. */
  readonly can: readonly Ability[]
  /** What it keeps leases in; those of one kind are compared with one another. */
  readonly over: Over
  /** The plain commands that others are measured against. */
  readonly isFloor?: boolean
  /** The key in Redis that is there as long as the lease is, or that says whether it is. */
  key?(name: string): string
  /** Does what the key says mean that the lease is held? @default it does if the key is there */
  isHeld?(value: string): boolean
  /** Starts a server of its own kind in this process and answers its port. */
  serve?(): Promise<number>
  /** `copy`: of its code, with the ability `copies`; see `Copies`. */
  open(place: Place, copy?: string): Promise<Client>
  /** Writes to what it keeps leases in, with a fence and without. */
  openWriter?(place: Place): Promise<Writer>
  /** One round trip to what it keeps leases in; its clients then have elections. */
  openTrip?(place: Place): Promise<Trip>
}

/** The smallest write of a raw client to the same server, as lasting as a lease is there: the unit of a hand-over. */
export interface Trip {
  make(): Promise<unknown>
  close(): Promise<unknown>
}

/** The same write twice, of one row or key. */
export interface Writer {
  plain(): Promise<unknown>
  fenced(): Promise<unknown>
  close(): Promise<unknown>
}

/** `redlock`: a majority of several independent servers of Redis. The last three only have a fence. */
export type Over =
  | ('redis' | 'etcd' | 'zookeeper' | 'redlock' | 'postgres' | 'sqlite' | 'memory' | 'broker')
  | ('http' | 'objects' | 'files')

export type Ability = 'pairs' | 'wait' | 'held' | 'copies' | 'permits' | 'sets'

/** One connection or store, as a process of a user has one. */
export interface Client {
  /** Waits for `name` without a limit, the way that the library does by default, and holds it for `ttl` ms. */
  acquire(name: string, ttl: number): Promise<Release>
  /** Holds a free name and keeps it until released; `onLost` is called when the library says that it is lost. */
  hold?(name: string, ttl: number, onLost: () => void): Promise<Held>
  election?(name: string): Election
  /** Waits for one of `limit` permits of `name`. */
  permit?(name: string, limit: number, ttl: number): Promise<Release>
  /** Waits for two names together. */
  both?(names: readonly [string, string], ttl: number): Promise<Release>
  close(): Promise<unknown>
}

/** What writers show to fences: the same for as long as they write. */
export const HOLDER: { readonly name: string; readonly token: bigint } = {
  name: 'fences',
  token: BigInt(Date.now()) * 1_000n,
}

/** Of what only has a fence. */
export const keepsNoLeases: Pick<Peer, 'can' | 'open'> = {
  can: [],
  open: () => Promise.reject(new Error('it keeps no leases')),
}

export type Release = () => Promise<unknown>

export interface Held {
  release: Release
  /** Asks the library, without a request, whether the lease is still held. */
  isHeld?(): boolean
}

export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Of every client of PostgreSQL here; `max` connections. */
export function poolOptions({ host, ports: [port] }: Place, max: number): object {
  return { host, port, user: 'postgres', database: 'postgres', max }
}
