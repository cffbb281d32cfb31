import { expect, test } from 'vitest'
import { Scene } from './scene.ts'

const never = new AbortController().signal
const by = { by: 'somebody' }

/** All nodes have a token that is ahead of the clocks of processes, so that the next one is one higher. */
async function sceneAhead(): Promise<Scene> {
  const scene = new Scene(3)
  const fast = await scene.process(5_000)
  const claim = fast.claim('first')
  await scene.outcome(fast.store.release({ ...claim, token: await fast.token(claim) }, never))
  await scene.pass(5)
  return scene
}

test('a break that was answered takes no vote from a later lease', async () => {
  const scene = new Scene(3)
  const [first, second, other] = [await scene.process(), await scene.process(), await scene.process()]
  await first.token(first.claim('first', 300))
  const send = other.keep('break', 2)
  expect(await scene.outcome(other.store.break('a', by, never))).toBeDefined()
  await scene.pass(300)
  second.reaches(0, 2)
  await second.token(second.claim('second'))
  send()
  await scene.pass(10)
  other.reaches(1, 2)
  expect(await scene.outcome(other.acquire(other.claim('other')))).toMatchObject({ held: false })
})

test('a break takes no vote from a later lease of a claim that it saw with another vote', async () => {
  const scene = new Scene(3)
  const [first, waiter, other] = [await scene.process(), await scene.process(), await scene.process()]
  const breaker = await scene.process()
  first.reaches(0, 1)
  await first.token(first.claim('first'))
  const votes = [0, 1].map(node => waiter.keep('vote', node))
  const claim = waiter.claim('waiter')
  const tie = waiter.acquire(claim)
  await scene.pass(5)
  const breaks = [0, 1, 2].map(node => breaker.keep('break', node))
  const breaking = breaker.store.break('a', by, never)
  await scene.pass(8)
  for (const vote of votes) vote()
  expect(await scene.outcome(tie)).toMatchObject({ held: false })
  await scene.pass(5)
  for (const send of breaks.slice(0, 2)) send()
  expect(await scene.outcome(breaking)).toBeDefined()
  waiter.reaches(0, 2)
  await waiter.token(claim)
  breaks[2]?.()
  await scene.pass(10)
  other.reaches(1, 2)
  expect(await scene.outcome(other.acquire(other.claim('other')))).toMatchObject({ held: false })
})

test('a break returns a token above one that is known only to a node without the lease', async () => {
  const scene = new Scene(3)
  const [holder, fast, slow] = [await scene.process(), await scene.process(5_000), await scene.process(-10_000)]
  fast.reaches(0)
  await scene.outcome(fast.acquire(fast.claim('leaves a higher token at one node')).catch(() => {}))
  const vote = holder.keep('vote', 2)
  const token = await holder.token(holder.claim('holder'))
  vote()
  await scene.pass(10)
  scene.servers[1]?.setClock(2_000)
  slow.reaches(1, 2)
  const answer = await scene.outcome(slow.store.break('a', by, never))
  expect(answer).toBeGreaterThan(token)
})

test('a break returns no token that the next holder may not exceed, if another claim came between its rounds', async () => {
  const scene = new Scene(3)
  const [holder, breaker] = [await scene.process(), await scene.process()]
  const [fast, between] = [await scene.process(100), await scene.process()]
  holder.reaches(0, 1)
  await holder.token(holder.claim('holder'))
  const first = [0, 1, 2].map(node => breaker.keep('break', node))
  const second = [1, 2].map(node => breaker.keep('break', node))
  const breaking = breaker.store.break('a', by, never).catch((error: unknown) => error)
  await scene.pass(10)
  scene.servers[1]?.setClock(2_000)
  for (const process of [fast, between]) process.reaches(1, 2)
  const claim = fast.claim('leaves a higher token at a majority')
  await scene.outcome(fast.store.release({ ...claim, token: await fast.token(claim) }, never))
  for (const send of first) send()
  await scene.pass(5)
  await between.token(between.claim('between'))
  for (const send of second) send()
  expect(await scene.outcome(breaking)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('R6, R10: a late vote with a higher token does not keep a lease that was broken', async () => {
  const scene = new Scene(3)
  const [holder, breaker] = [await scene.process(), await scene.process()]
  const vote = holder.keep('vote', 2)
  const claim = holder.claim('holder')
  const held = { ...claim, token: await holder.token(claim) }
  breaker.keep('break', 0)
  expect(await scene.outcome(breaker.store.break('a', by, never))).toBeGreaterThan(held.token)
  vote()
  await scene.pass(10)
  expect(scene.servers.map(server => server.look('a').holder?.id)).toEqual(['holder', undefined, 'holder'])
  expect(await scene.outcome(holder.store.annotate(held, never))).toBe(false)
  expect(await scene.outcome(holder.store.renew(held, never))).toBeUndefined()
})

test('R3, R10: a break that found no lease ends none that is acquired later', async () => {
  const scene = await sceneAhead()
  const [waiter, breaker] = [await scene.process(), await scene.process()]
  const vote = waiter.keep('vote', 0)
  waiter.keep('vote', 1)
  const acquiring = waiter.acquire(waiter.claim('waiter'))
  await scene.pass(5)
  const send = breaker.keep('break', 2)
  const breaking = breaker.store.break('a', by, never)
  await scene.pass(12)
  vote()
  expect(await scene.outcome(acquiring)).toMatchObject({ held: true })
  expect(await scene.outcome(breaking)).toBeUndefined()
  send()
  await scene.pass(10)
  expect(scene.servers.map(server => server.look('a').holder?.id)).toEqual(['waiter', undefined, 'waiter'])
})

test('R10: a break answers a token below that of a waiter that it woke', async () => {
  const scene = await sceneAhead()
  const [holder, loser] = [await scene.process(), await scene.process()]
  const [next, breaker] = [await scene.process(), await scene.process()]
  holder.reaches(0, 1)
  await holder.token(holder.claim('holder'))
  for (const id of ['once', 'twice']) {
    await scene.outcome(loser.acquire(loser.claim(id)))
    await scene.pass(100)
  }
  const send = breaker.keep('break', 2)
  const later = [0, 1].map(node => {
    breaker.keep('break', node)()
    return breaker.keep('break', node)
  })
  const breaking = breaker.store.break('a', by, never).catch((error: unknown) => error)
  await scene.pass(12)
  send()
  await scene.pass(3)
  next.reaches(0, 1)
  const token = await next.token(next.claim('next'))
  for (const go of later) go()
  const answer = await scene.outcome(breaking)
  if (typeof answer === 'bigint') expect(answer).toBeLessThan(token)
  else expect(answer).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})
