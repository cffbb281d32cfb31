import type { Flaw } from './flaws.ts'

/** What stands once in src/stores/rules/name.ts, and what replaces it. */
export const RULES: Readonly<Partial<Record<Flaw, readonly [from: string, to: string]>>> = {
  'two holders': ['of holder.slots) used.add(slot)', 'of holder.slots) if (slot < 0) used.add(slot)'],
  'holder gets another token': [
    'if (own) return this.#prolong(own, Math.max(own.expires, this.now + ttl))',
    'this.#endHolders(holder => holder === own)',
  ],
  'waiter gets another position': ['const at = this.#waiters.findIndex(waiter => waiter.id === id)', 'const at = -1'],
  'copy of acquire shortens': ['Math.max(own.expires, this.now + ttl)', 'this.now + ttl'],
  'tombstone ignored': ['if (this.#gone.has(id)) return', 'if (!id) return'],
  'tombstone of one second': ['this.now + LONGEST_REQUEST)', 'this.now + 1_000)'],
  'one tombstone a name': ['this.#gone.set(', 'this.#gone.clear(), this.#gone.set('],
  'tombstone ends with a lease': ['if (hasEnded) this.#change()', 'if (hasEnded) this.#gone.clear(), this.#change()'],
  'renewal gets another token': [
    'return own && this.#prolong(own, this.now + ttl)',
    `if (own) this.#replace(own, { ...own, token: this.#nextToken() })
    const renewed = this.#holders.find(holder => holder.id === id)
    return renewed && this.#prolong(renewed, this.now + ttl)`,
  ],
  'queue jumped': ['(at < 0 || index < at)', '(index < at)'],
  'no grace period': ['this.now >= this.#changed + first.grace\n', 'false\n'],
  'dead crowd blocks': ['Math.min(Math.max(ttl, 1_000), 5_000)', 'Math.max(ttl, 1_000)'],
  'slot given twice': ['if (!used.has(slot)) free', 'free'],
  'highest slot first': [
    'for (let slot = 0; free.length < units; slot += 1) if (!used.has(slot)) free.push(slot)',
    'for (let slot = least - 1; free.length < units; slot -= 1) if (!used.has(slot)) free.unshift(slot)',
  ],
  'one slot for all units': ['const slots = this.#freeSlots(limit, units)', 'const slots = this.#freeSlots(limit, 1)'],
  'own limit counts': ['least = Math.min(least, holder.limit)', ''],
  'slots above the limit': ['for (const slot of used) if (slot >= limit) return undefined', ''],
  'lock beside a slot': ['if (least - used.size < units)', 'if (least - used.size < (limit > 1 ? units : 0))'],
  'limit of 16': ['let least = limit', 'let least = Math.min(limit, 16)'],
  'copy changes the limit': [
    'if (own) return this.#prolong(own,',
    'if (own && own.limit !== asker.limit) this.#endHolders(holder => holder === own)\n    else if (own) return this.#prolong(own,',
  ],
  'copy of a waiter changes its units': ['{ ...asker, ...this.#termsOf(at) }', 'asker'],
  'copy ignores the other ends': [
    'Math.max(own.expires, this.now + ttl)',
    '(this.#holders.length > 1 ? this.now + ttl : Math.max(own.expires, this.now + ttl))',
  ],
  'tombstone only of a held name': [
    'this.#gone.set(',
    'if (this.#holders.some(({ limit }) => limit === 1) || this.#holders.length === 0) this.#gone.set(',
  ],
  'token of the slot': [
    'const token = this.#nextToken()\n    this.#holders',
    'this.#nextToken()\n    const token = slots[0] === 0 ? this.#token : this.#token - slots[0]\n    this.#holders',
  ],
  'slot lost with its holder': [
    'this.#endHolders(({ expires }) => expires <= now)',
    'this.#endHolders(({ expires, limit }) => expires <= now && (limit === 1 || now > expires + 60_000))',
  ],
  'release ends all leases': ['this.#endHolders(holder => holder.id === id)', 'this.#endHolders(() => true)'],
  'break ends one lease': [
    'if (ended.length === 0) return undefined',
    'if (ended.length === 0) return undefined\n    ended.splice(1)',
  ],
  'readers overtake': [
    'this.#fits(claim) && this.#mayPass(ahead)',
    'this.#fits(claim) && (claim.limit > 1 || this.#mayPass(ahead))',
  ],
  'small claims overtake': [
    'others.length === 0 && this.#fits(first) && this.now >= this.#changed + first.grace',
    'others.length === 0 && this.now >= this.#changed + first.grace',
  ],
  'position of many units outlasts': [
    'this.#removeWaiters(({ lapses }) => lapses <= now)',
    'this.#removeWaiters(({ lapses, units }) => lapses <= now && units === 1)',
  ],
  'break ends older leases': ['(only.token ?? token) === token', '(only.token ?? token) >= token'],
  'passed waiter counts on': ['passed ? { ...each, isPassed: true }', 'passed ? each'],
  'passed waiter never counts again': [
    'this.#waiters.with(at, waiter)',
    'this.#waiters.with(at, { ...waiter, isPassed: this.#waiters[at].isPassed })',
  ],
  'no chain of wakes': ['this.#change() // the next', 'this.#changed = this.now // the next'],
  'no wake of the next after a grant': [
    'if (second && (isChanged',
    'if (second && this.#holders.length === 0 && (isChanged',
  ],
  'no wake after a withdrawal': ['if (first !== this.#counted[0]) this.#change()', 'if (!first) {}'],
  'wake only of a free name': ['if (hasEnded) this.#change()', 'if (hasEnded && left.length === 0) this.#change()'],
}
