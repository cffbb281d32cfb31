import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { Requests } from '../requests.ts'
import { leaseOf, name, other, relay, server, store } from './relayed.ts'
import { claimOf, failureOf, hold, look, read, readHeld, signal } from './support.ts'

function isThere(held: string): Promise<boolean> {
  return readHeld(server, held).then(({ kvs = [] }) => kvs.length > 0)
}

/** The next such request arrives, and its answer is lost. */
function loseAnswer(match: RegExp): void {
  relay.onAnswer = (request, answer) => {
    if (!match.test(request)) return answer
    relay.onAnswer = (_, next) => next
    return '{}'
  }
}

describe('a stale request', () => {
  test('grants nothing when its claim was withdrawn meanwhile, of which only the lease was there', async () => {
    const claim = claimOf(name())
    const held = relay.holdBack(/kv\/txn.*request_put/)
    const asked = store.acquire(claim, signal)
    const pass = await held
    expect(await store.release(claim, signal)).toBe('gone')
    pass()
    expect(await asked).toMatchObject({ held: false })
    expect(await isThere(claim.name)).toBe(false)
    expect(await other.acquire(claim, signal)).toMatchObject({ held: false })
  })

  test('that the tombstone refused leaves nothing to release, although its answer was lost', async () => {
    const claim = claimOf(name())
    expect(await other.release(claim, signal)).toBe('gone')
    loseAnswer(/request_put/)
    expect(await failureOf(store.acquire(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await store.release(claim, signal)).toBe('gone')
  })

  test('that changed the ttl leaves its lease to the release, although its answer was lost', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    await store.renew({ ...claim, ttl: 20_000 }, signal)
    loseAnswer(/ignore_value/)
    expect(await failureOf(store.renew({ ...claim, ttl: 5_000 }, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await store.release(claim, signal)).toBe('released')
    expect(await isThere(claim.name)).toBe(false)
  })

  test('grants nothing when its lease comes after the withdrawal', async () => {
    const claim = claimOf(name())
    const held = relay.holdBack(/lease\/grant/)
    const asked = store.acquire(claim, signal)
    const pass = await held
    expect(await other.release(claim, signal)).toBe('gone')
    pass()
    expect(await asked).toMatchObject({ held: false })
    expect(await isThere(claim.name)).toBe(false)
  })

  test('finds the tombstone for 5 s, also if its lease was used for 5 s and the request took 5 s', async () => {
    const claim = claimOf(name())
    expect(await other.release(claim, signal)).toBe('gone')
    const [{ lease } = {}] = (await read(server, `holdfast\t\t${claim.id}`)).kvs ?? []
    expect(await server.call('lease/timetolive', { ID: lease })).toMatchObject({ grantedTTL: '15' })
  })

  test('is refused although the name went to another holder during each look of the withdrawal', async () => {
    const claim = claimOf(name())
    let holder = claimOf(claim.name)
    await hold(other, holder)
    let looks = 0
    relay.onAnswer = async (request, answer) => {
      if (!request.includes('request_range') || request.includes('request_put') || ++looks > 5) return answer
      await other.release(holder, signal)
      holder = claimOf(claim.name)
      await hold(other, holder)
      return answer
    }
    expect(await store.release(claim, signal)).toBe('gone')
    expect(looks).toBe(1)
    await other.release(holder, signal)
    expect(await other.acquire(claim, signal)).toMatchObject({ held: false })
  })

  test('grants nothing when its lease expired meanwhile', async () => {
    const claim = claimOf(name(), { ttl: 3_000 })
    const held = relay.holdBack(/kv\/txn.*request_put/)
    const asked = failureOf(store.acquire(claim, signal))
    const pass = await held
    const lease = /"lease":"(\d+)"/.exec(relay.requests.findLast(each => each.includes('request_put')) ?? '')?.[1]
    await until('it has expired', async () => {
      const { TTL } = await server.call<{ TTL?: string }>('lease/timetolive', { ID: lease })
      return TTL === '-1'
    })
    pass()
    await asked
    expect(await isThere(claim.name)).toBe(false)
    expect(await hold(other, claimOf(claim.name))).toBeDefined()
  })

  test('does not undo a later and longer change of the ttl', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    const held = relay.holdBack(/ignore_value/)
    const shorter = failureOf(store.renew({ ...claim, ttl: 3_000 }, signal))
    const pass = await held
    expect(await other.renew({ ...claim, ttl: 20_000 }, signal)).toBeDefined()
    pass()
    expect(await shorter).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    const [record] = await look(other, { name: claim.name })
    expect(record?.remaining).toBeGreaterThan(15_000)
  })

  test.each([/ignore_value/, /lease\/grant/])(
    'does not move a lease that was renewed for its former ttl meanwhile (%s)',
    async late => {
      for (const first of [store, other]) {
        const claim = claimOf(name())
        await hold(first, claim)
        const held = relay.holdBack(late)
        const longer = failureOf(store.renew({ ...claim, ttl: 20_000 }, signal))
        const pass = await held
        expect(await store.renew(claim, signal)).toMatchObject({ ttl: 10_000 })
        const lease = await leaseOf(claim.name)
        pass()
        expect(await longer).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
        expect(await leaseOf(claim.name)).toBe(lease)
      }
    },
  )

  test('does not end a lease that returned to its former ttl', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    const held = relay.holdBack(/lease\/revoke/)
    const longer = store.renew({ ...claim, ttl: 20_000 }, signal)
    const pass = await held
    expect(await store.renew(claim, signal)).toBeDefined()
    pass()
    await longer
    expect(await isThere(claim.name)).toBe(true)
  })

  test('does not free the next holder by a release', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    const held = relay.holdBack(/request_delete_range/)
    const late = store.release(claim, signal)
    const pass = await held
    await other.break(claim.name, { by: 'test' }, signal)
    const next = claimOf(claim.name)
    await hold(other, next)
    pass()
    expect(await late).toBe('gone')
    expect(await other.renew(next, signal)).toBeDefined()
  })

  test('does not break the next holder', async () => {
    const claim = claimOf(name())
    await hold(other, claim)
    const held = relay.holdBack(/request_delete_range/)
    const late = store.break(claim.name, { by: 'test' }, signal)
    const pass = await held
    await other.renew({ ...claim, ttl: 20_000 }, signal) // moves it to another lease
    await other.release(claim, signal)
    const next = claimOf(claim.name)
    const token = await hold(other, next)
    pass()
    expect(await late).toBeUndefined()
    expect(await other.renew(next, signal)).toMatchObject({ token })
  })
})

describe('an answer of a leader that was replaced', () => {
  /** Makes the keepalive look answered in the term before. */
  function ageKeepalives(): void {
    relay.onAnswer = (request, answer) =>
      request.startsWith('/v3/lease/keepalive')
        ? answer.replaceAll(/"raft_term":"(\d+)"/g, (_, term: string) => `"raft_term":"${Number(term) - 1}"`)
        : answer
  }

  test('does not count as a renewal', async () => {
    const claim = claimOf(name())
    const token = await hold(store, claim)
    ageKeepalives()
    expect(await failureOf(store.renew(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
    relay.onAnswer = (_, answer) => answer
    expect(await store.renew(claim, signal)).toMatchObject({ token })
  })

  test('does not count for a claim that asks again, nor for a waiter that is served', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    const waiter = claimOf(claim.name, { queue: true, ttl: 3_000 })
    await store.acquire(waiter, signal)
    await sleep(400) // one that was kept alive less than a tenth of its ttl ago is not again
    ageKeepalives()
    expect(await failureOf(store.acquire(claim, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await other.release(claim, signal)
    expect(await failureOf(store.acquire(waiter, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    relay.onAnswer = (_, answer) => answer
    expect(await store.acquire(waiter, signal)).toMatchObject({ held: true })
  })
})

test('a waiter that is served right after it joined holds for the rest of its ttl, without a keepalive', async () => {
  const claim = claimOf(name())
  await hold(other, claim)
  const waiter = claimOf(claim.name, { queue: true })
  const asked = performance.now()
  await store.acquire(waiter, signal)
  const woken = Promise.withResolvers<void>()
  const controller = new AbortController()
  await store.watch?.(waiter, () => woken.resolve(), controller.signal)
  await other.release(claim, signal)
  await woken.promise
  relay.requests.length = 0
  const sent = performance.now()
  const answer = await store.acquire(waiter, signal)
  expect(answer).toMatchObject({ held: true })
  const age = sent - asked
  if (age < 1_000) expect(relay.requests.filter(each => each.includes('keepalive'))).toEqual([])
  if (answer.held) expect(answer.ttl).toBeLessThan(10_000)
  controller.abort()
})

test('a waiter that is served after its machine slept sends a keepalive first, because its clock overstates what remains', async () => {
  const claim = claimOf(name())
  await hold(other, claim)
  const waiter = claimOf(claim.name, { queue: true })
  await store.acquire(waiter, signal)
  const woken = Promise.withResolvers<void>()
  const controller = new AbortController()
  await store.watch?.(waiter, () => woken.resolve(), controller.signal)
  await other.release(claim, signal)
  await woken.promise
  relay.requests.length = 0
  const now = Date.now
  using _ = vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_000)
  expect(await store.acquire(waiter, signal)).toMatchObject({ held: true, ttl: 10_000 })
  expect(relay.requests.filter(each => each.includes('keepalive'))).toHaveLength(1)
  controller.abort()
})

test('a copy that reads the name just before the first one is granted gets the same token', async () => {
  const claim = claimOf(name(), { queue: true })
  const held = relay.holdBack(/request_put/)
  const first = hold(store, claim)
  const pass = await held
  const { look } = Requests.prototype
  using _ = vi.spyOn(Requests.prototype, 'look').mockImplementationOnce(async function (this: Requests, ...asked) {
    const seen = await look.apply(this, asked)
    pass()
    await first
    return seen
  })
  expect(await hold(store, claim)).toBe(await first)
})

describe('claims that share a transaction', () => {
  test('are granted independently, also if the lease of one is gone', async () => {
    const taken = name()
    await hold(other, claimOf(taken))
    const claims = [...Array.from({ length: 20 }, name), taken].map(each => claimOf(each, { queue: true }))
    let granted = 0
    relay.onAnswer = (request, answer) => {
      if (request.includes('lease/grant')) granted += 1
      return answer
    }
    const busy = [relay.holdBack(/request_put/), relay.holdBack(/request_put/)] // two are under way, others gather
    const held = relay.holdBack(/(request_txn.*){10}/)
    const asked = Promise.allSettled(claims.map(claim => store.acquire(claim, signal)))
    const passBusy = await Promise.all(busy)
    await until('the others have their leases', () => granted === claims.length)
    for (const passOne of passBusy) passOne()
    const pass = await held
    const text = relay.requests.findLast(each => each.split('request_txn').length > 10) ?? ''
    await server.call('lease/revoke', { ID: /"lease":"(\d+)"/.exec(text)?.[1] })
    pass()
    const answers = await asked
    for (const [at, claim] of claims.entries()) {
      const answer = answers[at]
      if (claim.name === taken) expect(answer).toMatchObject({ value: { held: false } })
      else {
        const [found] = (await readHeld(server, claim.name)).kvs ?? []
        const token = BigInt(found?.create_revision ?? 0)
        expect(answer).toMatchObject({ value: { held: true, token } })
      }
    }
  })

  test('of one name are granted one after the other, each with its own token', async () => {
    const one = name()
    const tokens: bigint[] = []
    const round = async (): Promise<void> => {
      const claim = claimOf(one, { queue: true })
      for (;;) {
        const answer = await store.acquire(claim, signal)
        if (!answer.held) continue
        tokens.push(answer.token)
        await store.release(claim, signal)
        return
      }
    }
    await Promise.all(Array.from({ length: 10 }, round))
    expect(new Set(tokens).size).toBe(10)
  })
})

describe('keepalives', () => {
  test('of many leases share requests, and each is answered', async () => {
    const claims = Array.from({ length: 100 }, () => claimOf(name()))
    await Promise.all(claims.map(claim => hold(store, claim)))
    relay.requests.length = 0
    const renewed = await Promise.all(claims.map(claim => store.renew(claim, signal)))
    expect(renewed.every(grant => grant?.held)).toBe(true)
    expect(relay.requests.length).toBeLessThan(20)
  })

  test('that were lost from a joint request are repeated alone', async () => {
    const claims = Array.from({ length: 5 }, () => claimOf(name()))
    await Promise.all(claims.map(claim => hold(store, claim)))
    let first = true
    relay.onAnswer = (request, answer) => {
      if (!first || !request.startsWith('/v3/lease/keepalive')) return answer
      first = false
      return answer.slice(0, answer.indexOf('\n') + 1)
    }
    const renewed = await Promise.all(claims.map(claim => store.renew(claim, signal)))
    expect(renewed.every(grant => grant?.held)).toBe(true)
    expect(first).toBe(false)
  })
})
