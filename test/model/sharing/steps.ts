import {
  ASKED,
  AT_GATE,
  BUSY,
  copyOf,
  DEAD,
  type Demand,
  DONE,
  ENDS,
  FORGOTTEN,
  GRANTED,
  HELD,
  HOLDS,
  IDLE,
  INSIDE,
  NONE,
  type Plan,
  RESTARTS,
  type State,
  tidy,
} from './model.ts'

/** A step to another state. A fault is no step that anybody may count on. */
export interface Step {
  readonly what: string
  readonly isFault: boolean
  readonly to: State
}

/** Everything that may happen next. */
export function stepsOf(plan: Plan, from: State): Step[] {
  const steps: Step[] = []
  const add = (what: string, change: (state: State) => void, isFault = false): void => {
    const to = copyOf(from)
    change(to)
    tidy(plan, to)
    steps.push({ what, isFault, to })
  }
  for (let client = 0; client < plan.clients.length; client += 1) addSteps(plan, from, client, add)
  const gate = plan.slots
  for (let name = 0; name <= gate; name += 1) {
    const queue = from.names[name] as number[]
    for (const [at, entry] of queue.entries())
      if (entry === FORGOTTEN || from.phase[entry] === DEAD)
        add(`an entry of ${name} ends`, state => void state.names[name]?.splice(at, 1))
    if (name === gate && queue.length > 0 && from.left.break > 0)
      add(
        'the gate is broken',
        state => {
          state.left.break -= 1
          state.names[gate]?.shift()
        },
        true,
      )
    if (from.stale.includes(name))
      add(
        `a stale release of ${name} arrives`,
        state => {
          state.stale.splice(state.stale.indexOf(name), 1)
          state.names[name]?.shift()
        },
        true,
      )
  }
  return steps
}

type Add = (what: string, change: (state: State) => void, isFault?: boolean) => void

function addSteps(plan: Plan, from: State, client: number, add: Add): void {
  const { slots: count, rules } = plan
  const gate = count
  const { slots, want, waits, inOneStep } = plan.clients[client] as Demand
  const phase = from.phase[client]
  const knows = from.knows[client] as number[]
  const own = (state: State): number[] => state.knows[client] as number[]
  const is = (name: number): boolean => from.names[name]?.[0] === client
  const isIn = (name: number): boolean => from.names[name]?.includes(client) === true
  const moves = phase !== IDLE && phase !== DONE && phase !== DEAD
  if (moves && from.left.crash > 0)
    add(
      `${client} dies`,
      state => {
        state.left.crash -= 1
        state.phase[client] = DEAD
      },
      true,
    )

  if (phase === IDLE)
    add(`${client} begins`, state => {
      state.before[client] = (state.names[gate] ?? []).reduce((bits, other) => bits | mask(plan, state, other), 0)
      state.phase[client] = !waits && !rules.tryTakesGate ? INSIDE : AT_GATE
    })

  if (inOneStep && phase === AT_GATE) {
    add(`${client} asks in one step`, state => {
      if (askInOneStep(plan, state, client)) set(state, client, GRANTED)
    })
    if (is(gate) && from.left.loss > 0)
      add(
        `the gate of ${client} expires`,
        state => {
          state.left.loss -= 1
          state.names[gate]?.shift()
        },
        true,
      )
  }
  // After its release, such a copy leaves at most what ends by its ttl.
  if (inOneStep && moves && from.left.copy > 0)
    add(
      `a copy of the request of ${client} arrives`,
      state => {
        state.left.copy -= 1
        const isOver = phase === ENDS
        const before = state.names.map(queue => queue.includes(client))
        askInOneStep(plan, state, client)
        if (isOver) for (const [name, was] of before.entries()) if (!was) forget(state, client, name)
      },
      true,
    )

  if (phase === AT_GATE && !inOneStep) {
    const mayAsk = !isIn(gate)
    if (mayAsk && waits) add(`${client} joins the gate`, state => void state.names[gate]?.push(client))
    if (mayAsk && !waits)
      add(`${client} tries the gate`, state => {
        if (state.names[gate]?.length === 0) state.names[gate].push(client)
        else state.phase[client] = ENDS
      })
    const free = slots.filter(slot => from.names[slot]?.length === 0).slice(0, want)
    const isOpen = from.names[gate]?.length === 0 || (mayAsk && !rules.shortcutLooksAtGate)
    if (isOpen && free.length === want)
      add(`${client} is granted everything in one step`, state => {
        for (const slot of free) state.names[slot]?.push(client)
        set(state, client, GRANTED)
      })
    if (is(gate))
      add(`${client} hears that it holds the gate`, state => {
        state.phase[client] = INSIDE
        own(state)[gate] = HELD
      })
  }

  if (phase === GRANTED) {
    add(`${client} hears that it holds everything`, state => {
      for (const slot of slots.filter(isIn)) own(state)[slot] = HELD
      set(state, client, HOLDS)
    })
    if (from.left.unanswered > 0)
      add(
        `${client} gets no answer`,
        state => {
          state.left.unanswered -= 1
          // Withdrawn in the background, while it goes on.
          if (rules.shortcutWithdraws && !inOneStep) for (const slot of slots.filter(isIn)) forget(state, client, slot)
          set(state, client, waits ? AT_GATE : ENDS)
        },
        true,
      )
  }

  if (phase === INSIDE) {
    for (const slot of slots) {
      if (!isIn(slot) && knows[slot] !== HELD && knows[slot] !== BUSY)
        add(`${client} asks for slot ${slot}`, state => {
          const queue = state.names[slot] as number[]
          own(state)[slot] = waits || queue.length === 0 ? ASKED : BUSY
          if (waits || queue.length === 0) queue.push(client)
        })
      if (is(slot) && knows[slot] === ASKED)
        add(`${client} hears that it holds slot ${slot}`, state => {
          own(state)[slot] = HELD
          if (slots.filter(each => own(state)[each] === HELD).length >= want) state.phase[client] = HOLDS
        })
      if (knows[slot] === HELD && from.left.slotLoss > 0)
        add(
          `${client} loses slot ${slot} while it collects`,
          state => {
            state.left.slotLoss -= 1
            forget(state, client, slot)
          },
          true,
        )
    }
    if (!waits && slots.every(slot => knows[slot] === BUSY || knows[slot] === HELD))
      add(`${client} finds too few slots`, state => set(state, client, ENDS))
    const isLost = knows[gate] === HELD && !is(gate)
    const lose = (state: State): void => {
      own(state)[gate] = NONE
      if (rules.lossWithdraws) state.phase[client] = RESTARTS
    }
    if (isLost) add(`${client} hears that the gate is lost`, lose)
    if (knows[gate] === HELD && is(gate) && from.left.loss > 0)
      add(
        `the gate of ${client} expires`,
        state => {
          state.left.loss -= 1
          state.names[gate]?.shift()
          lose(state)
        },
        true,
      )
  }

  if (phase === HOLDS) {
    // What it does not need, and then the gate.
    const rest = slots.filter(slot => knows[slot] !== HELD && isIn(slot))
    for (const slot of rest) addWithdraw(from, client, slot, add)
    if (rest.length === 0 && isIn(gate)) addWithdraw(from, client, gate, add)
    if (rest.length === 0 && !isIn(gate)) add(`${client} begins to release`, state => set(state, client, ENDS))
    if (from.left.slotLoss > 0)
      add(
        `${client} loses its permit`,
        state => {
          state.left.slotLoss -= 1
          state.phase[client] = ENDS
        },
        true,
      )
  }

  if (phase === RESTARTS || phase === ENDS) {
    const rest = slots.filter(isIn)
    for (const slot of rest) addWithdraw(from, client, slot, add, rules.releaseById ? undefined : slot)
    if (rest.length === 0 && isIn(gate)) addWithdraw(from, client, gate, add)
    if (rest.length === 0 && !isIn(gate))
      add(`${client} ${phase === ENDS ? 'is done' : 'begins anew'}`, state => {
        state.phase[client] = phase === ENDS ? DONE : AT_GATE
        own(state).fill(NONE)
      })
  }
}

/** What the server does with `acquireSome` of one slot that queues (R14). True: it holds a slot. */
function askInOneStep({ clients, slots: gate, rules }: Plan, state: State, client: number): boolean {
  const { slots } = clients[client] as Demand
  const queueOf = (name: number): number[] => state.names[name] as number[]
  const held = state.granted[client] as number
  const leave = (name: number): void => {
    const queue = queueOf(name)
    if (queue.includes(client)) queue.splice(queue.indexOf(client), 1)
  }
  if (rules.copyFindsGrant && held >= 0 && queueOf(held)[0] === client) return true
  const isOpen = queueOf(gate).length === 0
  if (!isOpen && !queueOf(gate).includes(client)) queueOf(gate).push(client)
  if (!isOpen && queueOf(gate)[0] !== client) {
    if (rules.lossLeaves) for (const slot of slots) if (slot !== held || !rules.copyFindsGrant) leave(slot)
    return false
  }
  const free = slots.find(slot => queueOf(slot).length === 0 || queueOf(slot)[0] === client)
  if (free !== undefined && (rules.grantLeaves || !isOpen)) for (const slot of slots) if (slot !== free) leave(slot)
  if (free !== undefined) {
    if (queueOf(free)[0] !== client) queueOf(free).push(client)
    state.granted[client] = free
    leave(gate)
    return true
  }
  if (isOpen) queueOf(gate).push(client)
  for (const slot of slots) if (!queueOf(slot).includes(client)) queueOf(slot).push(client)
  return false
}

/** A withdrawal is repeated until it is answered. After too long the client gives up, and the entry ends by its ttl. */
function addWithdraw(from: State, client: number, name: number, add: Add, stale?: number): void {
  add(`${client} withdraws from ${name}`, state => {
    const queue = state.names[name] as number[]
    queue.splice(queue.indexOf(client), 1)
    if (stale !== undefined && !state.stale.includes(stale)) state.stale.push(stale)
  })
  if (from.left.forgotten > 0)
    add(
      `${client} cannot withdraw from ${name}`,
      state => {
        state.left.forgotten -= 1
        forget(state, client, name)
      },
      true,
    )
}

function forget(state: State, client: number, name: number): void {
  const queue = state.names[name] as number[]
  const at = queue.indexOf(client)
  if (at >= 0) queue[at] = FORGOTTEN
  const knows = state.knows[client] as number[]
  knows[name] = NONE
}

function set(state: State, client: number, phase: number): void {
  state.phase[client] = phase
}

/** Only clients that wait can be passed. */
function mask(plan: Plan, { phase }: State, client: number): number {
  return plan.clients[client]?.waits && phase[client] === AT_GATE ? 1 << client : 0
}
