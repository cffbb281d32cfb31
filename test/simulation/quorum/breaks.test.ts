import { expect, test } from 'vitest'
import { Scene } from './scene.ts'

const never = new AbortController().signal
const by = { by: 'somebody' }

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
  for (const index of [1, 2]) scene.servers[index]?.setClock(-20_000)
  const [breaker, between] = [await scene.process(), await scene.process(-60_000)]
  await between.token(between.claim('holder'))
  const raises = [1, 2].map(node => breaker.keep('raise', node))
  const breaking = breaker.store.break('a', by, never)
  await scene.pass(10)
  between.reaches(1, 2)
  await between.token(between.claim('between'))
  for (const raise of raises) raise()
  await expect(scene.outcome(breaking)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('R6, R10: a late vote with a higher token does not keep a lease that was broken', async () => {
  const scene = new Scene(3)
  const [holder, breaker] = [await scene.process(), await scene.process()]
  const vote = holder.keep('vote', 2)
  const claim = holder.claim('holder')
  const held = { ...claim, token: await holder.token(claim) }
  breaker.keep('break', 0)
  breaker.keep('raise', 0)
  expect(await scene.outcome(breaker.store.break('a', by, never))).toBeGreaterThan(held.token)
  vote()
  await scene.pass(10)
  expect(scene.servers.map(server => server.look('a').holder?.id)).toEqual(['holder', undefined, 'holder'])
  expect(await scene.outcome(holder.store.annotate(held, never))).toBe(false)
  expect(await scene.outcome(holder.store.renew(held, never))).toBeUndefined()
})
