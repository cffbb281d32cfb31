/** What a client asks for, once. */
export interface Demand {
  readonly slots: readonly number[]
  readonly want: number
  /** Does it wait? A try does not queue. */
  readonly waits: boolean
  /** Must nobody else hold meanwhile? */
  readonly isAlone?: boolean
  /** Does it wait by one request that passes the gate, looks, and queues? Only if it wants one slot. */
  readonly inOneStep?: boolean
}

/** The rules of the clients. Without one of them a search must find a violation. */
export interface Rules {
  /** A try enters only through the gate. */
  readonly tryTakesGate: boolean
  /** After the loss of its gate a client withdraws what it has, and only then asks for the gate again. */
  readonly lossWithdraws: boolean
  /** One request for all that is wanted, before the gate, is granted only if nobody is at the gate. */
  readonly shortcutLooksAtGate: boolean
  /** If that request is not answered, its claims are withdrawn. */
  readonly shortcutWithdraws: boolean
  /** A copy of a request that was granted finds what its claim holds, before it looks for anything else. */
  readonly copyFindsGrant: boolean
  /** That request leaves the queues of the other slots once it is granted one, also if the gate was lost before. */
  readonly grantLeaves: boolean
  /** It leaves the queues of all slots once others have the gate. */
  readonly lossLeaves: boolean
  /** A release is by the id of the claim, so a copy of it releases nobody else. */
  readonly releaseById: boolean
}

export const OURS: Rules = {
  tryTakesGate: true,
  lossWithdraws: true,
  shortcutLooksAtGate: true,
  shortcutWithdraws: true,
  copyFindsGrant: true,
  grantLeaves: true,
  lossLeaves: true,
  releaseById: true,
}

/** How often each fault may happen. */
export type Faults = Readonly<
  Record<'crash' | 'break' | 'loss' | 'slotLoss' | 'unanswered' | 'forgotten' | 'copy', number>
>

export interface Plan {
  readonly rules: Rules
  readonly slots: number
  readonly clients: readonly Demand[]
  readonly faults: Faults
}

export const IDLE = 0
/** It has asked for the gate. */
export const AT_GATE = 1
/** It believes to hold the gate, and collects slots. */
export const INSIDE = 2
/** It was granted its permit. */
export const HOLDS = 3
/** It drops everything, and then asks for the gate again. */
export const RESTARTS = 4
/** It drops everything, and is done. */
export const ENDS = 5
export const DONE = 6
export const DEAD = 7
/** The server has granted it everything in one step, and it has not heard so yet. */
export const GRANTED = 8

/** What a client knows of its claim on a name. */
export const NONE = 0
export const ASKED = 1
export const HELD = 2
/** A try was answered that the slot is busy. */
export const BUSY = 3

/** A claim that its client has forgotten. It ends by its ttl. */
export const FORGOTTEN = 9

/** All that a step depends on. `names`: the holder, then the queue. Slots come first, then the gate. */
export interface State {
  readonly phase: number[]
  readonly knows: number[][]
  readonly names: number[][]
  /** By client: the slot that it was granted in one step; -1 if none. */
  readonly granted: number[]
  /** By client: who was at the gate before it began, and still is. */
  readonly before: number[]
  readonly left: Record<keyof Faults, number>
  /** Stale releases by name that may still arrive, one for each name; only without `releaseById`. */
  readonly stale: number[]
}

export function startOf(plan: Plan): State {
  return {
    phase: plan.clients.map(() => IDLE),
    knows: plan.clients.map(() => Array.from({ length: plan.slots + 1 }, () => NONE)),
    names: Array.from({ length: plan.slots + 1 }, () => []),
    granted: plan.clients.map(() => -1),
    before: plan.clients.map(() => 0),
    left: { ...plan.faults },
    stale: [],
  }
}

/** What must never be, in words. */
export function violationOf(plan: Plan, { phase, knows, before }: State): string | undefined {
  for (let slot = 0; slot < plan.slots; slot += 1) {
    const holders = phase.flatMap((each, client) => (each === HOLDS && knows[client]?.[slot] === HELD ? [client] : []))
    if (holders.length > 1) return `slot ${slot} is held by ${holders.join(' and ')}`
  }
  const holders = phase.flatMap((each, client) => (each === HOLDS ? [client] : []))
  const alone = holders.find(client => plan.clients[client]?.isAlone)
  if (alone !== undefined && holders.length > 1) return `${holders.join(' and ')} hold, but ${alone} must be alone`
  const passed = phase.findIndex((each, client) => each === HOLDS && !plan.clients[client]?.waits && before[client])
  return passed < 0 ? undefined : `the try ${passed} came before a client that waited at the gate`
}

/** Forgets what nothing depends on any more, so that fewer states differ. */
export function tidy(plan: Plan, state: State): void {
  const gate = state.names[plan.slots] as number[]
  for (const [client, phase] of state.phase.entries()) {
    if (phase === DONE || phase === DEAD) {
      state.knows[client]?.fill(NONE)
      state.before[client] = 0
      state.granted[client] = -1
    }
    for (const [other] of state.phase.entries())
      if (!gate.includes(other)) state.before[client] = (state.before[client] as number) & ~(1 << other)
  }
  state.stale.sort((a, b) => a - b)
}

/** A copy to be changed. */
export function copyOf({ phase, knows, names, granted, before, left, stale }: State): State {
  return {
    phase: [...phase],
    knows: knows.map(each => [...each]),
    names: names.map(each => [...each]),
    granted: [...granted],
    before: [...before],
    left: { ...left },
    stale: [...stale],
  }
}
