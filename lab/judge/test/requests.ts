import { type Asker, Name } from '../../../src/stores/rules/name.ts'
import { type NameState, UNUSED } from '../../../src/stores/rules/state.ts'
import { Random } from '../../../test/simulation/random.ts'
import type { Details, Event } from '../history.ts'
import { event } from './made-up.ts'

type Answer = Omit<Details['answered'], 'request'>

/** A mistake of the store. */
export interface Mistake {
  /** Changes the state before each request. */
  readonly state?: (state: NameState) => NameState
  /** Changes the ttl of renewals. */
  readonly renewed?: (ttl: number) => number
  /** Changes the answer. */
  readonly answer?: (answer: Answer) => Answer
}

interface Sent {
  readonly request: number
  readonly verb: 'acquire' | 'renew' | 'release'
  readonly asker: Asker
  readonly ttl: number
  readonly sent: number
  readonly arrives: number
  readonly received: number
}

const REQUESTS = 40
const CLAIMS = 5

/** Milliseconds by which a request or an answer is late at most. */
const LATEST = 1_500

/**
 * Random requests for one name, and the answers of a store that decides by the rules. Some are late or lost in either way, and
 * clients give them up after `patience` ms.
 */
export function requests(seed: number, patience: number, { state, renewed, answer }: Mistake = {}): Event[] {
  const random = new Random(seed)
  const askers = Array.from({ length: CLAIMS }, (_, index): Asker => {
    const limit = random.pick([1, 2, 2, 3, 3, 2 ** 31 - 1])
    const units = Math.min(limit, random.pick([1, 1, 1, 2]))
    const terms = { limit, units, ttl: random.pick([450, 450, 5_000]), grace: 100, queue: random.chance(0.6) }
    return { id: `claim ${index}`, owner: '', note: '', ...terms }
  })
  const events: Event[] = []
  const arriving: Sent[] = []
  let now = 1
  for (let request = 0; request < REQUESTS; request += 1) {
    const asker = random.pick(askers)
    const verb = random.pick(['acquire', 'acquire', 'acquire', 'release', 'renew'] as const)
    const ttl = asker.ttl * (verb === 'renew' ? random.pick([1, 1, 2]) : 1)
    const [there, back] = [0, 0].map(() => (random.chance(0.1) ? random.between(0, LATEST) : random.between(1, 10)))
    const sent: Sent = {
      request,
      verb,
      asker,
      ttl,
      sent: now,
      arrives: now + (there ?? 0),
      received: now + (there ?? 0) + (back ?? 0),
    }
    const { id: claim, limit, units } = asker
    events.push(event('requested', now, { client: 0, name: 'a', claim, request, verb, ttl, limit, units }))
    if (!random.chance(0.05)) arriving.push(sent)
    now += random.chance(0.15)
      ? random.pick([1, 120, 495, 1_030])
      : random.chance(0.2)
        ? 0.5
        : Math.min(sent.received - now, patience) + 0.5
  }
  let held = UNUSED
  for (const sent of arriving.toSorted((one, other) => one.arrives - other.arrives)) {
    // A renewal that comes too late is refused (R3).
    if (sent.verb === 'renew' && sent.arrives - sent.sent > sent.asker.ttl / 3) continue
    const name = new Name(sent.arrives, state?.(held) ?? held)
    const said = decide(name, { ...sent, ttl: sent.verb === 'renew' ? (renewed?.(sent.ttl) ?? sent.ttl) : sent.ttl })
    held = name.state
    if (random.chance(0.08) || sent.received - sent.sent > patience) continue
    events.push(event('answered', sent.received, { request: sent.request, ...(answer?.(said) ?? said) }))
  }
  return events
}

function decide(name: Name, { verb, asker, ttl, arrives }: Sent): Answer {
  if (verb === 'release') return { is: name.release(asker.id) }
  const given = verb === 'acquire' ? name.acquire(asker) : name.renew(asker.id, ttl)
  if (!given?.held) return { is: verb === 'acquire' ? 'busy' : 'gone' }
  const ends = name.state.holders.find(({ id }) => id === asker.id)?.expires ?? 0
  return { is: 'held', token: String(given.token), slots: given.slots, ttl: ends - arrives }
}
