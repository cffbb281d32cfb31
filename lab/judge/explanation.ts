import { seconds } from './format.ts'
import type { Event } from './history.ts'
import { struck, type Trace } from './trace.ts'
import type { Violation } from './violation.ts'

/** The last events of other clients with the name. */
const MOST_BY_OTHERS = 6

/** The last faults that may be the cause. */
const MOST_FAULTS = 6

/**
 * The events that led to a violation, a line each: what its clients did, what they asked the store, what the resource
 * decided, which other clients acquired or released the name meanwhile, and the faults.
 */
export function explanation(trace: Trace, violation: Violation): string[] {
  const { acquisitions, history, run } = trace
  const parties = violation.ops.flatMap(op => acquisitions.get(op) ?? [])
  const requests = trace.requests.filter(({ asked }) => violation.claims?.includes(asked.claim))
  const clients = new Set([...parties, ...requests.map(({ asked }) => asked)].map(({ client }) => client))
  const from = Math.min(
    violation.at - run.ttl,
    ...parties.map(({ asked }) => asked),
    ...requests.map(({ sent }) => sent),
  )
  const ops = new Set(violation.ops)
  const numbers = new Set(requests.map(({ asked }) => asked.request))
  const near = history.filter(({ at }) => at >= from && at <= violation.at)
  // A release may arrive long after it left.
  const since = Math.min(...parties.map(({ granted }) => granted)) - run.ttl
  const handovers = near.filter(event => isHandover(event, violation.name) && !ops.has(event.op) && event.at >= since)
  const byOthers = new Set(handovers.slice(-MOST_BY_OTHERS))
  const relevant = near.filter(event => {
    if ('op' in event) return ops.has(event.op) || byOthers.has(event)
    if ('request' in event) return numbers.has(event.request)
    if ('write' in event) return ops.has(trace.writers.get(event.write)?.acquisition.op ?? -1)
    return event.kind === 'died' && clients.has(event.client)
  })
  const steps = shortened(relevant)
  const moments = [...steps.map(({ at }) => at), violation.at]
  const faults = near.filter(event => {
    if (event.kind !== 'fault' || !(clients.has(struck(event) ?? -1) || struck(event) === undefined)) return false
    return moments.some(at => at >= event.at && at <= (event.until ?? event.at) + run.ttl)
  })
  const all = [...steps, ...faults.slice(-MOST_FAULTS)].sort((one, other) => one.at - other.at)
  return [...all.map(line), `${seconds(violation.at)}  ${violation.name}: ${violation.what}`]
}

function isHandover(event: Event, name: string): event is Event<'granted' | 'releasing' | 'released'> {
  return (event.kind === 'granted' || event.kind === 'releasing' || event.kind === 'released') && event.name === name
}

/** Without the checks before the last one, and without the writes that succeeded. */
function shortened(events: readonly Event[]): Event[] {
  const trouble = new Set(events.flatMap(event => (isTrouble(event) ? [event.write] : [])))
  const lastWrites = new Map<string, number>()
  for (const event of events) if (event.kind === 'accepted') lastWrites.set(event.token, event.write)
  const kept = new Set([...trouble, ...lastWrites.values()])
  return events.filter((event, index) => {
    if (event.kind === 'believed') return !events.slice(index + 1).some(isLaterCheck(event))
    if ('write' in event) return kept.has(event.write) && event.kind !== 'wrote'
    return true
  })
}

function isTrouble(event: Event): event is Event<'rejected' | 'refused' | 'unsure'> {
  return event.kind === 'rejected' || event.kind === 'refused' || event.kind === 'unsure'
}

function isLaterCheck({ op }: Event<'believed'>): (event: Event) => boolean {
  return event => event.kind === 'believed' && event.op === op
}

function line(event: Event): string {
  return `${seconds(event.at)}  ${describe(event)}`
}

function describe(event: Event): string {
  switch (event.kind) {
    case 'run':
      return `the run begins, over ${event.engine}`
    case 'started':
      return `client ${event.client} starts`
    case 'opened':
      return `client ${event.client} has opened its store`
    case 'stalled':
      return `the machine kept ${event.client === undefined ? 'the lab' : `client ${event.client}`} from running for ${event.ms} ms`
    case 'died':
      return `client ${event.client} is dead`
    case 'asked':
      return `client ${event.client} requests ${event.name}`
    case 'granted':
      return `client ${event.client} is granted ${event.name} with token ${event.token}`
    case 'failed':
      return `client ${event.client} does not acquire ${event.name}: ${event.code}`
    case 'believed':
      return `client ${event.client} checks ${event.name} and holds it until ${seconds(event.until)}`
    case 'requested':
      return `client ${event.client} asks the store to ${event.verb} ${event.name}, claim ${event.claim.slice(0, 4)} (request ${event.request})`
    case 'answered':
      return `request ${event.request} is answered: ${event.is}${event.token === undefined ? '' : `, token ${event.token}, slots ${event.slots}, ${event.ttl} ms`}`
    case 'lost':
      return `client ${event.client} is notified that it lost ${event.name}: ${event.reason}`
    case 'releasing':
      return `client ${event.client} releases ${event.name}`
    case 'released':
      return `client ${event.client} has released ${event.name}${event.outcome ? `: ${event.outcome}` : ''}`
    case 'writing':
      return `client ${event.client} sends write ${event.write} with token ${event.token}`
    case 'wrote':
      return `client ${event.client} is answered that write ${event.write} is done`
    case 'refused':
      return `client ${event.client} is answered that write ${event.write} is refused`
    case 'unsure':
      return `client ${event.client} gets no answer to write ${event.write}`
    case 'accepted':
      return `the resource accepts write ${event.write} with token ${event.token}`
    case 'rejected':
      return `the resource refuses write ${event.write} with token ${event.token}: it has seen ${event.mark}`
    case 'fault':
      return `fault: ${event.what} (${event.target})${event.until === undefined ? '' : `, until ${seconds(event.until)}`}`
    case 'healed':
      return `end of fault: ${event.what} (${event.target})`
    case 'ended':
      return 'the run ends'
  }
}
