import { type Attempt, COMMITTING, GRANTED, IDLE, VOTING, WITHDRAWN } from './claim.ts'
import { commit, free, type Member, NOBODY, release, renew, vote, withdraw } from './member.ts'
import type { Plan } from './plan.ts'
import type { World } from './world.ts'

const HELD = 1
const FREE = 2
const LOST = 3

/** A possible next step. A node executes a message; its reply arrives or is lost. */
export type Step =
  | { kind: 'begin' | 'decide' | 'withdraw'; attempt: number }
  | { kind: 'vote'; attempt: number; member: number; by: number; isHeard: boolean }
  | { kind: 'commit'; attempt: number; member: number; isHeard: boolean }
  | { kind: 'yield'; attempt: number; member: number }
  | { kind: 'beat' | 'leave'; claim: number }
  | { kind: 'renew'; claim: number; member: number; round: number; isHeard: boolean }
  | { kind: 'restore'; claim: number; member: number; isHeard: boolean }
  | { kind: 'release'; claim: number; member: number }
  | { kind: 'rise'; member: number; by: number }
  | { kind: 'end' | 'forget'; member: number }

const WHETHER = [true, false]

/** All steps that are possible in some state. */
export function stepsOf(plan: Plan): Step[] {
  const attempts = plan.attempts.flatMap(count => Array.from({ length: count })).map((_, index) => index)
  const claims = plan.attempts.map((_, index) => index + 1)
  const members = Array.from({ length: plan.members }, (_, member) => member)
  const isTimed = plan.leasesEnd === 'unneeded'
  const rounds = Array.from({ length: plan.renewals }, (_, round) => round + 1)
  // To a number that was not there, or to the next that was.
  const rises = plan.numbers === 'ordered' ? [1, 2] : [1]
  const steps: Step[] = []
  for (const attempt of attempts) {
    steps.push({ kind: 'begin', attempt }, { kind: 'decide', attempt })
    if (isTimed) steps.push({ kind: 'withdraw', attempt })
    for (const member of members) {
      for (const isHeard of WHETHER) {
        for (const by of rises) steps.push({ kind: 'vote', attempt, member, by, isHeard })
        steps.push({ kind: 'commit', attempt, member, isHeard })
      }
      if (isTimed) steps.push({ kind: 'yield', attempt, member })
    }
  }
  for (const claim of claims) {
    if (isTimed) steps.push({ kind: 'beat', claim }, { kind: 'leave', claim })
    for (const member of members)
      if (plan.renewals > 0) {
        steps.push({ kind: 'release', claim, member })
        for (const isHeard of isTimed ? WHETHER : [false]) {
          for (const round of rounds) steps.push({ kind: 'renew', claim, member, round, isHeard })
          steps.push({ kind: 'restore', claim, member, isHeard })
        }
      }
  }
  for (const member of members) {
    for (const by of rises) steps.push({ kind: 'rise', member, by })
    steps.push({ kind: 'end', member })
    if (plan.forgetful > 0) steps.push({ kind: 'forget', member })
  }
  return steps
}

/** Takes a step. Returns whether it was possible. */
export function take(world: World, step: Step): boolean {
  switch (step.kind) {
    case 'begin':
      return begin(world, at(world.attempts, step.attempt))
    case 'decide':
      return decide(world, step.attempt)
    case 'withdraw':
      return giveUp(world, at(world.attempts, step.attempt))
    case 'vote':
      return takeVote(world, step.attempt, at(world.members, step.member), step.by, step.isHeard)
    case 'commit':
      return takeCommit(world, step.attempt, at(world.members, step.member), step.isHeard)
    case 'yield': {
      const { phase, claim, number } = at(world.attempts, step.attempt)
      const from = { claim, attempt: number, end: 0 }
      return phase === WITHDRAWN && withdraw(at(world.members, step.member), from, world.plan.rules)
    }
    case 'beat':
      return beat(world, step.claim)
    case 'leave':
      return leave(world, step.claim)
    case 'renew':
      return takeRenewal(world, step.claim, at(world.members, step.member), step.round, false, step.isHeard)
    case 'restore': {
      const member = at(world.members, step.member)
      const round = world.isTimed ? at(member.restoring, step.claim) : 1
      return round > 0 && takeRenewal(world, step.claim, member, round, true, step.isHeard)
    }
    case 'release':
      return takeRelease(world, step.claim, at(world.members, step.member))
    case 'rise':
      return rise(world, at(world.members, step.member), step.by)
    case 'end':
      return end(world, at(world.members, step.member))
    case 'forget':
      return forget(world, at(world.members, step.member))
  }
}

function begin(world: World, attempt: Attempt): boolean {
  if (attempt.phase !== IDLE) return false
  const index = world.attempts.indexOf(attempt)
  const previous = world.attempts[index - 1]
  if (attempt.number > 1) {
    if (!previous || previous.phase === IDLE || previous.phase === GRANTED) return false
    if (world.isTimed && previous.phase !== WITHDRAWN) return false
    if (previous.phase !== WITHDRAWN) drop(world, previous)
  } else if (!world.mayBegin(attempt.claim)) return false
  attempt.phase = VOTING
  attempt.low = 0
  for (const { phase, token } of world.attempts) if (phase === GRANTED && token > attempt.low) attempt.low = token
  at(world.claims, attempt.claim).relies = attempt.number
  return true
}

function giveUp(world: World, attempt: Attempt): boolean {
  if (attempt.phase !== VOTING && attempt.phase !== COMMITTING) return false
  drop(world, attempt)
  at(world.claims, attempt.claim).relies = 0
  return true
}

/** What was asked to be written stays on its way. */
function drop(world: World, attempt: Attempt): void {
  if (attempt.phase === VOTING) world.forgetVotes(attempt)
  attempt.phase = WITHDRAWN
}

function takeVote(world: World, index: number, member: Member, by: number, isHeard: boolean): boolean {
  const attempt = at(world.attempts, index)
  const isOpen = attempt.phase === VOTING && !hasVoted(member, index)
  if (attempt.phase === IDLE || (isHeard && !isOpen) || (member.forgot && world.plan.rules.quarantine)) return false
  if (member.owner === NOBODY ? world.isHighest(member.counter) : member.owner !== attempt.claim) return false
  // Without a time to live, a vote for one's own lease that nobody hears changes nothing.
  if (!isHeard && !world.isTimed && member.owner !== NOBODY) return false
  const { claim, number } = attempt
  const token = vote(member, { claim, attempt: number, end: number }, member.counter + by)
  if (isHeard) member.seen[index] = token
  return true
}

function decide(world: World, index: number): boolean {
  const attempt = at(world.attempts, index)
  if (attempt.phase !== VOTING || world.count(member => hasVoted(member, index)) < world.majority) return false
  let most = 0
  for (const member of world.members) most = Math.max(most, at(member.seen, index))
  attempt.token = most
  attempt.phase = COMMITTING
  for (const member of world.members) member.acked[index] = false
  const agreeing = world.count(member => at(member.seen, index) === most)
  if (agreeing < world.majority && world.plan.rules.writeBack) return true
  world.forgetVotes(attempt)
  return world.grant(attempt)
}

function hasVoted(member: Member, index: number): boolean {
  return at(member.seen, index) > 0 || at(member.acked, index)
}

function takeCommit(world: World, index: number, member: Member, isHeard: boolean): boolean {
  const { rules } = world.plan
  const attempt = at(world.attempts, index)
  const isOpen = attempt.phase === COMMITTING && !at(member.acked, index)
  if (attempt.phase < COMMITTING || attempt.token === 0 || (isHeard && !isOpen)) return false
  if (member.forgot && rules.quarantine) return false
  const seen = at(member.seen, index)
  if (seen === 0 && (rules.countedOnly || !isOpen)) return false
  if (!commit(member, attempt.claim, seen, attempt.token, rules)) return false
  if (!isHeard) return true
  member.acked[index] = true
  return world.count(each => at(each.acked, index)) < world.majority || world.grant(attempt)
}

function beat(world: World, claim: number): boolean {
  const of = at(world.claims, claim)
  if (!world.granted(claim) || of.relies === 0 || of.round === world.plan.renewals) return false
  of.round += 1
  for (const member of world.members) member.answer[claim] = 0
  return true
}

function leave(world: World, claim: number): boolean {
  const of = at(world.claims, claim)
  if (!world.granted(claim) || of.relies === 0) return false
  of.relies = 0
  return true
}

function takeRenewal(
  world: World,
  claim: number,
  member: Member,
  round: number,
  restore: boolean,
  isHeard: boolean,
): boolean {
  const grant = world.granted(claim)
  if (!grant) return false
  const of = at(world.claims, claim)
  if (world.isTimed && round > of.round) return false
  if (isHeard && (round < of.round || of.relies === 0 || member.forgot)) return false
  const isNobodys = member.owner === NOBODY
  const from = { claim, attempt: grant.number, end: world.plan.attempts[claim - 1] ?? 0 }
  from.end += round
  const answer = renew(member, from, grant.token, restore, world.plan.rules)
  if (world.isTimed && isNobodys && answer === 'held' && member.released[claim])
    world.violation = `${world.name(claim)} holds node again that it has released`
  if (!isHeard) return true
  member.answer[claim] = answer === 'held' ? HELD : answer === 'free' ? FREE : LOST
  hear(world, claim)
  return true
}

/** A majority renews the lease. Where it was free it may be set again, once that makes a majority or there is one. */
function hear(world: World, claim: number): void {
  const of = at(world.claims, claim)
  const held = world.count(member => member.answer[claim] === HELD)
  const unheld = world.count(member => member.answer[claim] === FREE)
  if (held >= world.majority) of.relies = (world.plan.attempts[claim - 1] ?? 0) + of.round
  if (held === 0 || held + unheld < world.majority) return
  for (const member of world.members) if (member.answer[claim] === FREE) member.restoring[claim] = of.round
}

function takeRelease(world: World, claim: number, member: Member): boolean {
  const grant = world.granted(claim)
  if (!grant || (world.isTimed && at(world.claims, claim).relies > 0)) return false
  if (!release(member, claim, grant.token + 1, world.plan.rules)) return false
  if (world.isTimed) member.released[claim] = true
  return true
}

/** As by an attempt that came to nothing, or by the floor of the vote that follows. */
function rise(world: World, member: Member, by: number): boolean {
  if (member.owner !== NOBODY || world.isHighest(member.counter) || (member.forgot && world.plan.rules.quarantine))
    return false
  member.counter += by
  return true
}

function end(world: World, member: Member): boolean {
  if (member.owner === NOBODY) return false
  const { relies } = at(world.claims, member.owner)
  if (world.isTimed && relies > 0 && member.end >= relies) return false
  free(member)
  return true
}

function forget(world: World, member: Member): boolean {
  if (member.forgot || world.count(({ forgot }) => forgot) >= world.plan.forgetful) return false
  free(member)
  member.counter = 0
  member.forgot = true
  member.released.fill(false)
  return true
}

function at<T>(list: readonly T[], index: number): T {
  return list[index] as T
}
