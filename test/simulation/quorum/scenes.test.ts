import { describe, expect, test } from 'vitest'
import { StoreLocks } from '../../../src/create-locks.ts'
import { MAX_TTL, Scene } from './scene.ts'
import type { VotingServer } from './server.ts'
import type { Variant } from './simulate.ts'
import { acksOfAnyNode } from './variants.ts'

const never = new AbortController().signal

test('after a node restarted without data, a name that three of five nodes hold stays held', async () => {
  expect(await takenAfterRestart({})).toBe(false)
})

test('without its quarantine, another claim acquires the name', async () => {
  expect(await takenAfterRestart({ flaw: { isTrusting: true } })).toBe(true)
})

/** A, B, C are held; C restarts empty; does another get C, D, E? */
async function takenAfterRestart(variant: Variant): Promise<boolean> {
  const scene = new Scene(5, variant)
  const holder = await scene.process()
  holder.reaches(0, 1, 2)
  await holder.token(holder.claim('holder'))
  scene.servers[2]?.crash()
  scene.servers[2]?.restart(() => true)
  const other = await scene.process()
  other.reaches(2, 3, 4)
  const answer = await scene.outcome(other.acquire(other.claim('other')).catch(() => undefined))
  return answer?.held === true
}

test.for([0.4, 999.9])(
  'a node that started %d ms into a second grants nothing for maxTtl, and at most for a second longer',
  async milliseconds => {
    const scene = new Scene(1)
    const [node] = scene.servers as [VotingServer]
    node.setClock(milliseconds)
    node.crash()
    node.restart(() => false)
    await scene.pass(0.2)
    const greeting = node.greet()
    const votesIn = async (): Promise<number> =>
      (await node.carryOut(greeting, Number.POSITIVE_INFINITY, () => true)).votesIn
    expect(await votesIn()).toBe(MAX_TTL)
    await scene.pass(MAX_TTL - 10)
    expect(await votesIn()).toBeGreaterThan(0)
    await scene.pass(1_010)
    expect(await votesIn()).toBe(0)
  },
)

describe('when all nodes forget', () => {
  const second = async (clockBack: number): Promise<bigint[]> => {
    const scene = new Scene(3)
    const process = await scene.process()
    const first = await process.token(process.claim('first'))
    for (const server of scene.servers) server.forget(() => true)
    await scene.outcome(process.acquire(process.claim('too early')).catch(() => {}))
    await scene.pass(2_010)
    const other = await scene.process(-clockBack)
    return [first, await other.token(other.claim('second'))]
  }

  test('tokens rise after a clock went back by less than the quarantine', async () => {
    const [before = 0n, after = 0n] = await second(1_900)
    expect(after).toBeGreaterThan(before)
  })

  test('a token falls if a clock went back by more than the outage and the quarantine', async () => {
    const [before = 0n, after = 0n] = await second(2_200)
    expect(after).toBeLessThan(before)
  })
})

describe('a late copy of a commit', () => {
  /** The token of a claim that was granted at its second attempt, and of the next. */
  const tokens = async (variant: Variant): Promise<bigint[]> => {
    const scene = new Scene(3, variant)
    const fast = await scene.process(100)
    fast.reaches(1)
    await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
    const process = await scene.process()
    process.reaches(0, 1)
    const send = process.keep('commit', 0)
    const claim = process.claim('first')
    await scene.outcome(process.acquire(claim))
    await scene.pass(200)
    const first = await process.token(claim)
    send()
    await scene.pass(1_600)
    const slow = await scene.process(-10_000)
    slow.reaches(0, 2)
    return [first, await slow.token(slow.claim('second'))]
  }

  test('does not lower the token of a later attempt', async () => {
    const [first = 0n, second = 0n] = await tokens({})
    expect(second).toBeGreaterThan(first)
  })

  test('lowers it if the copy does not name its vote', async () => {
    const [first = 0n, second = 0n] = await tokens({ flaw: { commitsAll: true } })
    expect(second).toBeLessThan(first)
  })
})

describe('an attempt that lost a vote', () => {
  /** The token that was granted meanwhile, and the next after both. */
  const tokens = async (variant: Variant): Promise<bigint[]> => {
    const scene = new Scene(3, variant)
    const [process, fast, other, slow] = [
      await scene.process(),
      await scene.process(100),
      await scene.process(5_000),
      await scene.process(-10_000),
    ]
    fast.reaches(1)
    await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
    const vote = process.keep('vote', 2)
    const commits = [0, 1, 2].map(node => process.keep('commit', node))
    const acquiring = process.acquire(process.claim('first')).catch(() => {})
    await scene.pass(10)
    scene.servers[0]?.setClock(2_000)
    other.reaches(0, 2)
    const granted = await other.token(other.claim('second'))
    scene.servers[2]?.setClock(2_000)
    vote()
    await scene.pass(10)
    for (const commit of commits) commit()
    await scene.outcome(acquiring)
    await scene.pass(1_600)
    slow.reaches(1, 2)
    return [granted, await slow.token(slow.claim('third'))]
  }

  test('is abandoned, and lowers no token', async () => {
    const [granted = 0n, next = 0n] = await tokens({})
    expect(next).toBeGreaterThan(granted)
  })

  test('lowers a token if nodes without a counted vote acknowledge it', async () => {
    const [granted = 0n, next = 0n] = await tokens(acksOfAnyNode)
    expect(next).toBeLessThan(granted)
  })
})

test('an abandoned attempt removes nothing of a later one, although the clock was set back between them', async () => {
  const scene = new Scene(3)
  const [process, fast] = [await scene.process(), await scene.process(100)]
  fast.reaches(1)
  await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
  process.reaches(0, 1)
  const commits = [0, 1].map(node => process.keep('commit', node))
  const claim = process.claim('twice')
  const first = process.acquire(claim).catch(() => {})
  await scene.pass(10)
  process.machine.setWall(-3_600_000)
  const token = await process.token(claim)
  for (const commit of commits) commit()
  await scene.outcome(first)
  await scene.pass(10)
  expect(await scene.outcome(process.store.renew({ ...claim, token }, never))).toMatchObject({ token })
})

test('R6: a late commit of an abandoned attempt raises no vote of the lease', async () => {
  const scene = new Scene(3)
  const [holder, fast] = [await scene.process(), await scene.process(5_000)]
  fast.reaches(2)
  await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
  await scene.pass(60)
  const vote = holder.keep('vote', 1)
  const [commit] = [0, 2].map(node => holder.keep('commit', node))
  const claim = holder.claim('twice')
  const first = holder.acquire(claim).catch(() => {})
  await scene.pass(12)
  vote()
  await scene.pass(12)
  holder.reaches() // So no node hears that the first attempt is abandoned.
  await scene.outcome(first)
  await scene.pass(120)
  holder.reaches(0, 1)
  const held = { ...claim, token: await holder.token(claim) }
  commit?.()
  await scene.pass(10)
  expect(await scene.outcome(holder.store.renew(held, never))).toMatchObject({ token: held.token })
})

test('a waiter asks again soon after a node stalled, although another one is in quarantine', async () => {
  const scene = new Scene(3)
  const [, restarted, stalled] = scene.servers
  restarted?.crash()
  restarted?.restart(() => true)
  const { store, machine } = await scene.process()
  const locks = new StoreLocks(store, {}, { clock: machine, random: () => 0.5 })
  stalled?.stop(120)
  const began = scene.world.now
  await scene.outcome(locks.acquire('a', { ttl: 1_500 }))
  expect(scene.world.now - began).toBeLessThan(MAX_TTL / 4)
})

test('R9: an attempt that had a majority, and gives it up, wakes the first waiter', async () => {
  const scene = new Scene(3)
  const [winner, fast, waiter] = [await scene.process(), await scene.process(100), await scene.process()]
  fast.reaches(0)
  await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
  winner.reaches(0, 1)
  for (const node of [0, 1]) winner.keep('commit', node)
  const acquiring = winner.acquire(winner.claim('winner')).catch(() => {})
  await scene.pass(10)
  const claim = waiter.claim('waiter')
  let wakes = 0
  await scene.outcome(waiter.store.watch?.(claim, () => (wakes += 1), never) ?? Promise.resolve())
  expect(await scene.outcome(waiter.acquire(claim))).toMatchObject({
    held: false,
    holder: { remaining: expect.any(Number) },
  })
  expect(wakes).toBe(0)
  await scene.outcome(acquiring)
  await scene.pass(10)
  expect(wakes).toBeGreaterThan(0)
  expect(await scene.outcome(waiter.acquire(claim))).toMatchObject({ held: true })
})

test.each(['renew', 'restore'] as const)(
  'a late %s of a renewal that was answered shortens no later one',
  async verb => {
    const scene = new Scene(3)
    const [holder, other] = [await scene.process(), await scene.process()]
    const claim = holder.claim('holder', 300)
    holder.reaches(...(verb === 'restore' ? [0, 1] : [0, 1, 2]))
    const held = { ...claim, token: await holder.token(claim) }
    holder.reaches(0, 1, 2)
    const send = holder.keep(verb, 2)
    await scene.outcome(holder.store.renew(held, never))
    await scene.pass(200)
    holder.reaches(0, 2)
    expect(await scene.outcome(holder.store.renew({ ...held, ttl: 1_500 }, never))).toMatchObject({ held: true })
    send()
    await scene.pass(400)
    other.reaches(1, 2)
    expect(await scene.outcome(other.acquire(other.claim('other')))).toMatchObject({ held: false })
  },
)

test('R6: a renewal that one node does not answer does not deny a lease that another restores', async () => {
  const scene = new Scene(3)
  const holder = await scene.process()
  holder.reaches(0, 1)
  const claim = holder.claim('holder')
  const held = { ...claim, token: await holder.token(claim) }
  holder.reaches(0, 1, 2)
  scene.servers[1]?.setClock(2_000)
  const send = holder.keep('renew', 0)
  const first = holder.store.renew(held, never)
  await scene.pass(10)
  holder.keep('renew', 0)
  const second = holder.store.renew(held, never).catch((error: unknown) => error)
  await scene.pass(10)
  send()
  expect(await scene.outcome(first)).toMatchObject({ held: true })
  expect(await scene.outcome(second)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await scene.outcome(holder.store.renew(held, never))).toMatchObject({ held: true })
})

test.each([
  ['', false],
  [', and that had a position there', true],
] as const)(
  'R3: a late restore brings no lease back that was released while a rival had the vote%s',
  async (_, waits) => {
    const scene = new Scene(3)
    const [holder, rival, first] = [await scene.process(), await scene.process(-10_000), await scene.process()]
    for (const node of [0, 1]) first.keep('vote', node)
    const tie = waits ? first.acquire(first.claim('first')).catch(() => {}) : undefined
    await scene.pass(5)
    holder.reaches(...(waits ? [0, 1, 2] : [0, 1]))
    const claim = holder.claim('holder')
    const held = { ...claim, token: await holder.token(claim) }
    holder.reaches(0, 1, 2)
    if (tie) await scene.outcome(tie)
    await scene.pass(100)
    const send = holder.keep('restore', 2)
    await scene.outcome(holder.store.renew(held, never))
    for (const node of [0, 1]) rival.keep('vote', node)
    const losing = rival.acquire(rival.claim('rival')).catch(() => {})
    await scene.pass(10)
    expect(scene.servers[2]?.look('a').holder?.id).toBe('rival')
    expect(await scene.outcome(holder.store.release(held, never))).toBe('released')
    await scene.outcome(losing)
    await scene.pass(10)
    send()
    await scene.pass(10)
    expect(scene.servers[2]?.look('a').holder).toBeUndefined()
  },
)
