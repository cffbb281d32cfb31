/**
 * Readers and writers at a fenced resource, which they use twice each. A client may be paused at any time, so its leases
 * may end without its knowledge. The resource has a high-water mark for each slot. In the broken variant a reader reads
 * without showing its token.
 */
import { explore, type Steps } from './explore.ts'

export type Side = 'reader' | 'writer'

interface Marks {
  /** By slot: the last token, and who holds it by the store's clock. */
  readonly tokens: readonly number[]
  readonly holders: readonly (number | null)[]
  readonly marks: readonly number[]
  readonly clients: readonly Client[]
}

interface Client {
  /** Slot and token of what it was granted. */
  readonly held: readonly (readonly [slot: number, token: number])[]
  readonly uses: number
  /** Who used the resource since its first use. */
  readonly beside: readonly number[]
  readonly isOver: boolean
}

/** Reader slots; the name itself is slot 0. */
const READERS = 2

/** A writer's use between the first and the last of a reader, or the other way round. `readersShow`: as we demand. */
export function besideWriter(sides: readonly Side[], readersShow: boolean): string[] | undefined {
  const all = Array.from({ length: READERS + 1 }, (_, slot) => slot)
  const isApart = (one: number, other: number): boolean => sides[one] === 'writer' || sides[other] === 'writer'

  const stepsOf: Steps<Marks> = function* (state) {
    const { tokens, holders, marks, clients } = state
    const put = (client: number, change: Partial<Client>): Client[] =>
      clients.with(client, { ...(clients[client] as Client), ...change })
    for (const [client, { held, uses, isOver }] of clients.entries()) {
      if (isOver) continue
      if (held.length === 0) {
        const free = all.filter(slot => holders[slot] === null)
        const choices = sides[client] === 'reader' ? free.filter(slot => slot > 0).map(slot => [slot]) : [all]
        for (const slots of choices.filter(each => each.every(slot => free.includes(slot)))) {
          const next = tokens.map((token, slot) => token + (slots.includes(slot) ? 1 : 0))
          const granted = slots.map(slot => [slot, next[slot] as number] as const)
          const taken = holders.map((holder, slot) => (slots.includes(slot) ? client : holder))
          yield [
            `the ${sides[client]} ${client} is granted ${slots.join(', ')}`,
            { ...state, tokens: next, holders: taken, clients: put(client, { held: granted }) },
          ]
        }
        continue
      }
      if (holders.includes(client))
        yield [
          `the leases of ${client} end`,
          { ...state, holders: holders.map(holder => (holder === client ? null : holder)) },
        ]
      const shows = readersShow || sides[client] === 'writer'
      const isStale = shows && held.some(([slot, token]) => token < (marks[slot] as number))
      if (isStale) {
        yield [`${client} is refused`, { ...state, clients: put(client, { isOver: true }) }]
        continue
      }
      if (uses === 2) continue
      const raised = marks.map((mark, slot) => (shows ? held.find(([own]) => own === slot)?.[1] : undefined) ?? mark)
      const seen = put(client, { uses: uses + 1 }).map((each, other) =>
        each.uses === 1 && other !== client
          ? { ...each, beside: [...new Set([...each.beside, client])].sort((a, b) => a - b) }
          : each,
      )
      yield [`the ${sides[client]} ${client} uses it`, { ...state, marks: raised, clients: seen }]
    }
  }
  const violationOf = ({ clients }: Marks): string | undefined => {
    for (const [client, { uses, beside }] of clients.entries()) {
      const other = uses === 2 ? beside.find(each => isApart(client, each)) : undefined
      if (other !== undefined)
        return `the ${sides[other]} ${other} came between two uses of the ${sides[client]} ${client}`
    }
    return undefined
  }
  const client: Client = { held: [], uses: 0, beside: [], isOver: false }
  const start: Marks = {
    tokens: all.map(() => 0),
    holders: all.map(() => null),
    marks: all.map(() => 0),
    clients: sides.map(() => client),
  }
  return explore(start, stepsOf, violationOf)
}
