import { describe, expect, test } from 'vitest'
import type { Claim } from '../../../contract/store.ts'
import { leaseOf, name, other, relay, store } from './relayed.ts'
import { claimOf, failureOf, hold, signal } from './support.ts'

/** The request that acquires the name is under way, and so is the one by which the next attempt revokes its lease. */
async function twoAttempts(claim: Claim): Promise<{ take(): Promise<unknown>; revoke(): Promise<unknown> }> {
  const controller = new AbortController()
  const start = async (request: RegExp): Promise<() => Promise<unknown>> => {
    const held = relay.holdBack(request)
    const asked = failureOf(store.acquire(claim, controller.signal))
    const pass = await held
    return () => {
      pass()
      return asked
    }
  }
  const take = await start(/request_put/)
  const revoke = await start(/lease\/revoke/)
  controller.abort(new Error('the core asks again'))
  return { take, revoke }
}

describe.each(['free', 'waited for'])('a lease of a name that was %s', how => {
  async function ready(): Promise<Claim> {
    const claim = claimOf(name(), { queue: true })
    if (how === 'free') return claim
    const holder = claimOf(claim.name)
    await hold(other, holder)
    await store.acquire(claim, signal)
    await other.release(holder, signal)
    return claim
  }

  test('is not ended by the revoke of an attempt before the one that was granted', async () => {
    const claim = await ready()
    const { take, revoke } = await twoAttempts(claim)
    await take()
    const token = await hold(store, claim)
    await revoke()
    const lease = await leaseOf(claim.name)
    expect(await store.renew(claim, signal)).toMatchObject({ token })
    expect(await leaseOf(claim.name)).toBe(lease)
  })

  test('is not ended by it either if the first request arrives during the third attempt', async () => {
    const claim = await ready()
    const { take, revoke } = await twoAttempts(claim)
    const held = relay.holdBack(/request_put/)
    const third = hold(store, claim)
    const pass = await held
    await take()
    pass()
    const token = await third
    await revoke()
    expect(await store.renew(claim, signal)).toMatchObject({ token })
  })

  test('is not granted if that revoke is answered before the keepalive of the third attempt', async () => {
    const claim = await ready()
    const { take, revoke } = await twoAttempts(claim)
    await take()
    const lease = await leaseOf(claim.name)
    const [kept, passes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    relay.onAnswer = async (request, answer) => {
      if (!/lease\/keepalive/.test(request) || !request.includes(`"${lease}"`)) return answer
      kept.resolve()
      await passes.promise
      return answer
    }
    const third = failureOf(store.acquire(claim, signal))
    await kept.promise
    await revoke()
    passes.resolve()
    expect(await third).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    const token = await hold(store, claim)
    expect(await store.renew(claim, signal)).toMatchObject({ token })
  })
})
