import type { Event } from './history.ts'
import { struck, type Trace } from './trace.ts'
import { seconds } from './verdict.ts'
import type { Violation } from './violation.ts'

/**
 * What a listener needs to follow, a line for each step, up to the violation: what its parties did, what the resource
 * made of it, who else had the name or gave it back meanwhile, and what went wrong.
 */
export function story(trace: Trace, violation: Violation): string[] {
  const { acquisitions, history, run } = trace
  const parties = violation.ops.flatMap(op => acquisitions.get(op) ?? [])
  const clients = new Set(parties.map(({ client }) => client))
  const from = Math.min(violation.at - run.ttl, ...parties.map(({ asked }) => asked))
  const meanwhile = Math.max(from, Math.min(...parties.map(({ granted }) => granted)))
  const ops = new Set(violation.ops)
  const told = history.filter(event => {
    if (event.at < from || event.at > violation.at) return false
    if ('op' in event && ops.has(event.op)) return true
    if (isHandover(event)) return event.name === violation.name && event.at >= meanwhile
    if ('write' in event) return ops.has(trace.writers.get(event.write)?.acquisition.op ?? -1)
    if (event.kind === 'fault') return clients.has(struck(event) ?? -1) || struck(event) === undefined
    return event.kind === 'died' && clients.has(event.client)
  })
  return [...shortened(told).map(line), `${seconds(violation.at)}  ${violation.name}: ${violation.what}`]
}

function isHandover(event: Event): event is Event<'granted' | 'releasing' | 'released'> {
  return event.kind === 'granted' || event.kind === 'releasing' || event.kind === 'released'
}

/** Without looks that were followed by another, and writes that went as they should. */
function shortened(events: readonly Event[]): Event[] {
  const trouble = new Set(events.flatMap(event => (isTrouble(event) ? [event.write] : [])))
  const lastWrites = new Map<string, number>()
  for (const event of events) if (event.kind === 'accepted') lastWrites.set(event.token, event.write)
  const kept = new Set([...trouble, ...lastWrites.values()])
  return events.filter((event, index) => {
    if (event.kind === 'believed') return !events.slice(index + 1).some(isLaterLook(event))
    if ('write' in event) return kept.has(event.write) && event.kind !== 'wrote'
    return true
  })
}

function isTrouble(event: Event): event is Event<'rejected' | 'refused' | 'unsure'> {
  return event.kind === 'rejected' || event.kind === 'refused' || event.kind === 'unsure'
}

function isLaterLook({ op }: Event<'believed'>): (event: Event) => boolean {
  return event => event.kind === 'believed' && event.op === op
}

function line(event: Event): string {
  return `${seconds(event.at)}  ${tell(event)}`
}

function tell(event: Event): string {
  switch (event.kind) {
    case 'run':
      return `the run begins, over ${event.engine}`
    case 'started':
      return `client ${event.client} starts`
    case 'died':
      return `client ${event.client} is dead`
    case 'asked':
      return `client ${event.client} asks for ${event.name}`
    case 'granted':
      return `client ${event.client} is granted ${event.name} with token ${event.token}`
    case 'failed':
      return `client ${event.client} does not get ${event.name}: ${event.code}`
    case 'believed':
      return `client ${event.client} looks and is told that it holds ${event.name} until ${seconds(event.until)}`
    case 'lost':
      return `client ${event.client} is told that it lost ${event.name}: ${event.reason}`
    case 'releasing':
      return `client ${event.client} gives ${event.name} back`
    case 'released':
      return `client ${event.client} has given ${event.name} back${event.outcome ? `: ${event.outcome}` : ''}`
    case 'writing':
      return `client ${event.client} sends write ${event.write} with token ${event.token}`
    case 'wrote':
      return `client ${event.client} is told that write ${event.write} is done`
    case 'refused':
      return `client ${event.client} is told that write ${event.write} is refused`
    case 'unsure':
      return `client ${event.client} is not told what became of write ${event.write}`
    case 'accepted':
      return `the resource accepts write ${event.write} with token ${event.token}`
    case 'rejected':
      return `the resource refuses write ${event.write} with token ${event.token}: it has seen ${event.mark}`
    case 'fault':
      return `fault: ${event.what} (${event.target})${event.until === undefined ? '' : `, until ${seconds(event.until)}`}`
    case 'healed':
      return `over: ${event.what} (${event.target})`
    case 'ended':
      return 'the run ends'
  }
}
