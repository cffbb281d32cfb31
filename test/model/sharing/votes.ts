/**
 * How a majority of servers grants permits: each permit is a slot, and a server has one holder for each slot. The broken
 * variant counts: a server grants any `limit` permits.
 */
import { explore, type Steps } from './explore.ts'

interface Votes {
  /** By client: the slot that it asks for; none before its first request. */
  readonly slot: readonly (number | null)[]
  /** By server: the clients that it granted. */
  readonly granted: readonly (readonly number[])[]
  /** By server: the clients that it answered. */
  readonly asked: readonly (readonly number[])[]
}

export interface VotePlan {
  readonly servers: number
  readonly clients: number
  readonly limit: number
  /** Is a vote for a slot? Otherwise it is for any permit. */
  readonly perSlot: boolean
}

/** More permits than the limit, by any order of the requests. Nobody releases, so there is no other way to them. */
export function overcrowded(plan: VotePlan): string[] | undefined {
  const { servers, clients, limit, perSlot } = plan
  const each = Array.from({ length: clients }, (_, client) => client)
  const none = Array.from({ length: servers }, () => [])
  const start: Votes = { slot: each.map(() => null), granted: none, asked: none }

  const stepsOf: Steps<Votes> = function* ({ slot, granted, asked }) {
    for (const client of each)
      for (let server = 0; server < servers; server += 1) {
        if (asked[server]?.includes(client)) continue
        const own = slot[client]
        const all = Array.from({ length: perSlot ? limit : 1 }, (_, which) => which)
        for (const which of own === null || own === undefined ? all : [own]) {
          const there = granted[server] ?? []
          const isFree = perSlot ? !there.some(other => slot[other] === which) : there.length < limit
          const add = (to: Votes['asked']): number[][] =>
            to.map((list, at) => (at === server ? [...list, client].sort((a, b) => a - b) : [...list]))
          const what = `server ${server} answers client ${client}: ${isFree ? 'granted' : 'busy'}`
          yield [what, { slot: slot.with(client, which), granted: isFree ? add(granted) : granted, asked: add(asked) }]
        }
      }
  }
  const violationOf = ({ granted }: Votes): string | undefined => {
    const holders = each.filter(client => granted.filter(there => there.includes(client)).length > servers / 2)
    return holders.length > limit ? `${holders.join(', ')} hold, with a limit of ${limit}` : undefined
  }
  return explore(start, stepsOf, violationOf)
}
