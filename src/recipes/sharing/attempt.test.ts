/** What happens between two steps of an attempt: the work of a program may run there, and answers that arrive together. */
import { describe, expect, test } from 'vitest'
import { follow, type Stage, stage } from '../../../test/scripted-store.ts'
import { look, signal } from '../../../test/support.ts'
import type { Claim } from '../../contract/store.ts'
import type { LeaseSet } from './lease-set.ts'
import type { Permit } from './permit.ts'

/** More turns of the microtask queue than any of these calls takes. */
const TURNS = 60

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve()
}

async function states({ server }: Stage): Promise<string[]> {
  return (await look(server, { prefix: '' })).map(({ name, state, owner }) => `${name} ${state} ${owner}`).sort()
}

/** Reports to the holder of the claim on `name` that it is gone. */
function reporter({ store }: Stage, name: string): () => void {
  let id = ''
  store.rule('acquire', forward => {
    const claim = store.claim as Claim
    if (claim.name === name) id = claim.id
    return forward()
  })
  return () => store.notifyLoss.get(id)?.()
}

const calls: Record<string, (stage: Stage, stop: AbortSignal) => Promise<Permit | LeaseSet>> = {
  'a permit': ({ locks }, stop) => locks.semaphore('x', { limit: 2 }).acquire({ signal: stop }),
  'two permits': ({ locks }, stop) => locks.semaphore('x', { limit: 2 }).acquire({ signal: stop, permits: 2 }),
  'a reader': ({ locks }, stop) => locks.readWrite('x').reader.acquire({ signal: stop }),
  'a writer': ({ locks }, stop) => locks.readWrite('x').writer.acquire({ signal: stop }),
  'a set': ({ locks }, stop) => locks.all(['x', 'y']).acquire({ signal: stop }),
}

describe.each(Object.entries(calls))('%s that is aborted', (_, call) => {
  test.each(['free', 'taken'])('at any moment, while the name is %s, leaves nothing behind', async state => {
    for (let turn = 0; turn < TURNS; turn += 1) {
      const scene = stage()
      const { clock, other } = scene
      if (state === 'taken') await other.semaphore('x', { limit: 2 }).acquire({ permits: 2 })
      const before = await states(scene)
      const controller = new AbortController()
      const outcome = follow(call(scene, controller.signal))
      await turns(turn)
      controller.abort('enough')
      await clock.advance(100)
      expect(outcome.settled).toBe(true)
      if (outcome.value) {
        expect(outcome.value.signal.aborted).toBe(false)
        await outcome.value.release()
      } else expect(outcome.error).toBe('enough')
      expect(await states(scene), `aborted in turn ${turn}`).toEqual(before)
    }
  })
})

test('a slot that is lost as the last one is granted is acquired again', async () => {
  for (let turn = 0; turn < TURNS; turn += 1) {
    const scene = stage({ owner: 'me' })
    const { clock, locks, other, server } = scene
    const first = await other.acquire('x')
    const last = await other.semaphore('x', { limit: 2 }).acquire()
    await other.break('x')
    const report = reporter(scene, 'x')
    const outcome = follow<Permit>(locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 }))
    await clock.advance(100)
    expect(outcome.settled).toBe(false)
    await server.break('x', { by: 'the test' }, signal)
    void last.release()
    await turns(turn)
    report()
    await clock.advance(5_000)
    expect(
      outcome.value?.slots.map(({ slot }) => slot),
      `lost in turn ${turn}`,
    ).toEqual([0, 1])
    expect(await first.release()).toBe('lost')
  }
})

test('a call that loses its gate at any moment waits for no slot without it', async () => {
  for (let turn = 0; turn < TURNS; turn += 1) {
    const scene = stage({ owner: 'me' })
    const { clock, locks, other, server } = scene
    await other.semaphore('x', { limit: 4 }).acquire({ permits: 4 })
    const report = reporter(scene, 'x\u241fgate')
    void locks.semaphore('x', { limit: 4 }).acquire()
    await turns(turn)
    await server.break('x\u241fgate', { by: 'the test' }, signal)
    report()
    await clock.advance(100)
    expect(await states(scene), `lost in turn ${turn}`).toContain('x\u241fgate held me')
  }
})
