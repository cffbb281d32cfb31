/** A mistake in src/stores/rules/name.ts: what stands there once, and what replaces it. */
interface Variant {
  readonly what: string
  readonly from: string
  readonly to: string
}

export const VARIANTS: readonly Variant[] = [
  { what: 'no grace period', from: 'this.now >= this.#changed + first.grace\n', to: 'true\n' },
  {
    what: 'the third passes two waiters',
    from: 'return others.length === 0 && this.#fits(first) && this.now',
    to: 'return this.#fits(first) && this.now',
  },
  {
    what: 'a small claim overtakes a large one',
    from: 'return others.length === 0 && this.#fits(first) && this.now',
    to: 'return others.length === 0 && this.now',
  },
  { what: 'the largest limit counts', from: 'Math.min(least, holder', to: 'Math.max(least, holder' },
  { what: 'a slot is given twice', from: 'if (!used.has(slot)) free', to: 'free' },
  {
    what: 'a slot in use is above the limit',
    from: 'for (const slot of used) if (slot >= limit) return undefined',
    to: '',
  },
  { what: 'no wake after a withdrawal', from: 'if (first !== this.#counted[0]) this.#change()', to: 'if (!first) {}' },
  { what: 'no chain of wakes', from: 'this.#change() // the next', to: '// the next' },
  { what: 'no hint to the second', from: 'wakes.set(second.id', to: 'if (!second) wakes.set(second.id' },
  { what: 'no hint to a new second', from: '(isChanged || this.#hasNewSecond)', to: 'isChanged' },
  {
    what: 'a position outlives a clock that is set back',
    from: 'each.lapses > longest + 1 ? ',
    to: 'each.lapses < 0 ? ',
  },
  { what: 'no tombstone', from: 'this.#gone.set(', to: 'if (!id) this.#gone.set(' },
  { what: 'a copy shortens a lease', from: 'Math.max(own.expires, this.now + ttl)', to: 'this.now + ttl' },
  {
    what: 'a lapse that nobody sees',
    from: 'this.#removeWaiters(({ lapses }) => lapses <= now)',
    to: 'this.#waiters = this.#waiters.filter(({ lapses }) => lapses > now)',
  },
  {
    what: 'a lapsed waiter counts',
    from: 'this.#removeWaiters(({ lapses }) => lapses <= now)',
    to: '',
  },
  {
    what: 'the end of a lease that nobody sees',
    from: 'this.#endHolders(({ expires }) => expires <= now)',
    to: 'this.#holders = this.#holders.filter(({ expires }) => expires > now)',
  },
  {
    what: 'claims that leave restart the grace period',
    from: 'if (first !== this.#counted[0]) this',
    to: 'if (hasEnded) this',
  },
  { what: 'a passed waiter counts', from: '=> !isPassed && (at < 0', to: '=> (at < 0' },
  { what: 'nobody is passed', from: 'passed ? { ...each, isPassed: true }', to: 'passed ? each' },
  { what: 'a later request changes limit and units', from: '{ ...asker, ...this.#termsOf(at) }', to: 'asker' },
  {
    what: 'a token is given twice',
    from: 'Math.max(this.#token + 1, this.#floor)',
    to: 'Math.max(this.#token, this.#floor)',
  },
  { what: 'a claim that does not queue overtakes', from: '(at < 0 || index < at)', to: '(index < at)' },
  {
    what: 'a waiter that was passed never counts again, although its position is kept',
    from: 'lapses: this.now + positionLifetime(waiter.ttl), isPassed: false }',
    to: 'lapses: this.now + positionLifetime(waiter.ttl), isPassed: waiter.isPassed }',
  },
  {
    what: 'no retry at the end of a lease',
    from: 'Math.min(delay, expires - now)',
    to: 'delay',
  },
  { what: 'no retry at a lapse', from: 'Math.min(delay, lapses - now)', to: 'delay' },
  {
    what: 'no retry at the end of a grace period',
    from: 'if (left > 0) delay',
    to: 'if (!ahead) delay',
  },
  {
    what: 'a claim that does not fit asks at once when a grace period is over',
    from: 'if (left > 0) delay',
    to: 'delay',
  },
  { what: 'a clock that was set back makes a lease last', from: 'each.expires > now + each.ttl + 1', to: '!each' },
]
