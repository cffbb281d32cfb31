interface Event {
  readonly at: number
  readonly order: number
  action: (() => void | Promise<void>) | undefined
}

/** A run has a few thousand events; with more there is an endless loop. */
const MOST_EVENTS = 200_000

/** True time in ms and all future events, in one thread. All clocks of the simulation derive from it. */
export class World {
  now = 0
  /** The number of past events. */
  events = 0
  readonly #heap: Event[] = []
  #order = 0

  /** Calls `action` after `delay` ms of true time. Returns how to cancel it. */
  after(delay: number, action: () => void | Promise<void>): () => void {
    const event: Event = { at: this.now + Math.max(delay, 0), order: this.#order, action }
    this.#order += 1
    this.#push(event)
    return () => {
      event.action = undefined
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  /** Runs events until `isOver`, or until `limit`. Returns whether it was over. */
  async run(isOver: () => boolean, limit: number): Promise<boolean> {
    await settled()
    while (!isOver()) {
      const event = this.#heap[0]
      if (!event || event.at > limit) {
        await settled() // some promises take two turns of the event loop
        if (this.#heap[0] !== event) continue
        this.now = limit
        return false
      }
      this.#pop()
      if (!event.action) continue
      this.now = event.at
      this.events += 1
      if (this.events > MOST_EVENTS) throw new Error(`more than ${MOST_EVENTS} events in ${this.now} ms`)
      const going = event.action()
      await settled()
      await going
    }
    return true
  }

  #push(event: Event): void {
    const heap = this.#heap
    let index = heap.push(event) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent] as Event
      if (!isBefore(event, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let index = 0
    for (;;) {
      const [left, right] = [heap[2 * index + 1], heap[2 * index + 2]]
      if (!left) break
      const isRight = right !== undefined && isBefore(right, left)
      const child = isRight ? right : left
      if (!isBefore(child, last)) break
      heap[index] = child
      index = 2 * index + (isRight ? 2 : 1)
    }
    heap[index] = last
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at
}

/** Resolves when all promises wait for an event. */
export function settled(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
