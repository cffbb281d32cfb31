import { COMMITTING, GRANTED } from './claim.ts'
import { NOBODY } from './member.ts'
import type { Plan } from './plan.ts'
import { type Step, stepsOf, take } from './steps.ts'
import { World } from './world.ts'

/**
 * Describes the steps along `path` to a violation, a line for each step. A state stands for all orders of the nodes, so
 * this finds the steps again with a fixed order.
 */
export function story(plan: Plan, path: readonly Uint8Array[]): string[] {
  const world = new World(plan)
  const draft = new Uint8Array(world.size)
  const steps = stepsOf(plan)
  const lines = retell(plan, plan.given ?? [], world).map(line => `given that ${line}`)
  for (const bytes of path.slice(1))
    lines.push(
      find(world, steps, () => {
        world.write(draft, 0)
        return draft.every((byte, index) => byte === bytes[index])
      }),
    )
  return [...lines, `${find(world, steps, () => world.violation !== '')}: ${world.violation}`]
}

/** Describes the steps from the start. */
export function retell(plan: Plan, steps: readonly Step[], world: World = new World(plan)): string[] {
  return steps.map(step => {
    const before = snapshot(world)
    take(world, step)
    return tell(world, before, step)
  })
}

/** Takes the step that leads to the given state, and describes it. */
function find(world: World, steps: readonly Step[], isRight: () => boolean): string {
  const before = snapshot(world)
  for (const step of steps) {
    if (!take(world, step)) continue
    const line = tell(world, before, step)
    if (isRight()) return line
    Object.assign(world, structuredClone(before), { violation: '' })
  }
  throw new Error('the path to the violation was not found again')
}

type Snapshot = Pick<World, 'members' | 'attempts' | 'claims'>

function snapshot({ members, attempts, claims }: World): Snapshot {
  return structuredClone({ members, attempts, claims })
}

function tell(world: World, before: Snapshot, step: Step): string {
  const node = 'member' in step ? `node ${step.member + 1}` : ''
  const member = 'member' in step ? world.members[step.member] : undefined
  const previous = 'member' in step ? before.members[step.member] : undefined
  const attempt = 'attempt' in step ? world.attempts[step.attempt] : undefined
  const ofSeveral = attempt && world.plan.attempts[attempt.claim - 1] !== 1 ? ` (attempt ${attempt.number})` : ''
  const name = world.name('claim' in step ? step.claim : (attempt?.claim ?? 0)) + ofSeveral
  const heard = 'isHeard' in step && step.isHeard ? '' : ', unheard'
  const handedOut = attempt?.phase === GRANTED ? `; ${name} is handed out token ${attempt.token}` : ''
  switch (step.kind) {
    case 'begin':
      return `${name} begins`
    case 'decide':
      return attempt?.phase === COMMITTING
        ? `${name} has a majority and asks it to write ${attempt.token}`
        : `${name} has a majority${handedOut}`
    case 'withdraw':
      return `${name} gives up`
    case 'vote':
      return `${node} grants ${member?.token} to ${name}${heard}`
    case 'commit':
      return `${node} writes ${member?.token} for ${name}${heard}${handedOut}`
    case 'yield':
      return `${node} frees the withdrawn vote of ${name}`
    case 'beat':
      return `${name} renews`
    case 'leave':
      return `${name} lets go`
    case 'renew':
    case 'restore':
      if (previous?.owner === member?.owner && member?.owner === NOBODY) return `${node} is free for ${name}${heard}`
      if (member?.owner !== ('claim' in step ? step.claim : 0)) return `${node} answers ${name} that it lost${heard}`
      return previous?.owner === NOBODY
        ? `${node} sets the lease of ${name} again, its counter from ${previous.counter} to ${member.counter}${heard}`
        : `${node} renews ${name}, its counter from ${previous?.counter} to ${member.counter}${heard}`
    case 'release':
      return `${node} releases ${name}, its counter from ${previous?.counter} to ${member?.counter}`
    case 'rise':
      return `the counter of ${node} rises to ${member?.counter}`
    case 'end':
      return `the lease of ${world.name(previous?.owner ?? 0)} ends at ${node}`
    case 'forget':
      return `${node} loses its memory`
  }
}
