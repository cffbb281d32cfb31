import { expect } from 'vitest'
import type { Asker } from '../../../src/stores/rules/name.ts'
import type { NameState } from '../../../src/stores/rules/state.ts'
import type { NameClass } from './model.ts'

const TTL = 10_000
const GRACE = 100
/** Milliseconds for which a waiter with this ttl keeps its position. */
const LIFETIME = 5_000

/** One name, asked at moments of our choice. */
export class Scene {
  readonly #Name: NameClass
  #state: NameState

  constructor(Class: NameClass, unused: NameState) {
    this.#Name = Class
    this.#state = unused
  }

  /** The name at this moment. What it decides is kept. */
  at(now: number): InstanceType<NameClass> {
    const name = new this.#Name(now, this.#state)
    return new Proxy(name, {
      get: (_, key) => {
        const value: unknown = Reflect.get(name, key, name)
        if (typeof value !== 'function') return value
        return (...parameters: unknown[]): unknown => {
          const answer: unknown = value.apply(name, parameters)
          this.#state = name.state
          return answer
        }
      },
    })
  }
}

const lock = (id: string, more: Partial<Asker> = {}): Asker => {
  return { id, owner: id, note: '', ttl: TTL, limit: 1, units: 1, grace: GRACE, queue: true, ...more }
}

/** What searches do not see, or only after many steps. Each runs with the real class, and with broken ones. */
export const scenes: Readonly<Record<string, (scene: Scene) => void>> = {
  'claims that leave the end of the queue do not restart the grace period of the first'(scene) {
    for (const id of ['holder', 'dead', 'second', 'third']) scene.at(0).acquire(lock(id))
    scene.at(1_000).release('holder')
    scene.at(1_050).release('third')
    expect(scene.at(1_000 + GRACE).acquire(lock('second'))).toMatchObject({ held: true })
  },

  'a dead waiter that was passed delays nobody again'(scene) {
    for (const id of ['holder', 'dead', 'second', 'third']) scene.at(0).acquire(lock(id))
    scene.at(1_000).release('holder')
    scene.at(1_000 + GRACE).acquire(lock('second'))
    scene.at(1_200).acquire(lock('third'))
    scene.at(1_500).release('second')
    expect(scene.at(1_500).acquire(lock('third'))).toMatchObject({ held: true })
  },

  'a waiter that was passed counts again once it asks'(scene) {
    for (const id of ['holder', 'slow', 'second', 'third']) scene.at(0).acquire(lock(id))
    scene.at(1_000).release('holder')
    scene.at(1_000 + GRACE).acquire(lock('second'))
    expect(scene.at(1_200).acquire(lock('slow'))).toMatchObject({ held: false, ahead: 0 })
    scene.at(1_500).release('second')
    expect(scene.at(1_500).acquire(lock('third'))).toMatchObject({ held: false, ahead: 1 })
    expect(scene.at(1_550).acquire(lock('slow'))).toMatchObject({ held: true })
  },

  'a waiter that was passed counts again once its position is kept'(scene) {
    for (const id of ['holder', 'kept', 'second', 'third']) scene.at(0).acquire(lock(id))
    scene.at(1_000).release('holder')
    scene.at(1_000 + GRACE).acquire(lock('second'))
    scene.at(1_200).keep(['kept'])
    scene.at(1_500).release('second')
    expect(scene.at(1_500).acquire(lock('third'))).toMatchObject({ held: false, ahead: 1 })
  },

  'a position that its store keeps counts as one that asks'(scene) {
    for (const id of ['holder', 'kept']) scene.at(0).acquire(lock(id))
    for (let now = 1_000; now <= 9_000; now += 1_000) expect(scene.at(now).keep(['kept', 'gone'])).toEqual(['gone'])
    expect(scene.at(9_500).acquire(lock('other', { queue: false }))).toMatchObject({ held: false, ahead: 1 })
  },

  'a waiter whose position lapsed does not count, and the next one is woken'(scene) {
    for (const id of ['holder', 'dead']) scene.at(0).acquire(lock(id, { limit: 1 }))
    scene.at(4_000).acquire(lock('second'))
    scene.at(4_000).release('holder')
    const name = scene.at(LIFETIME)
    name.keep([])
    expect([...name.wakes()]).toEqual([['second', 0]])
    expect(scene.at(LIFETIME).acquire(lock('second'))).toMatchObject({ held: true })
  },

  'limit and units belong to the claim: a later request changes neither'(scene) {
    scene.at(0).acquire(lock('reader', { limit: 5 }))
    scene.at(0).acquire(lock('writer'))
    expect(scene.at(10).acquire(lock('writer', { limit: 5, units: 2 }))).toMatchObject({ held: false })
    scene.at(20).release('reader')
    expect(scene.at(20).acquire(lock('writer', { limit: 5, units: 2 }))).toMatchObject({ held: true, slots: [0] })
  },

  'a waiter asks again when a lease ends, a position lapses, its grace period begins, or its own needs it'(scene) {
    expect(scene.at(0).acquire(lock('holder', { ttl: 1_000 }))).toMatchObject({ held: true })
    expect(scene.at(0).acquire(lock('dead'))).toMatchObject({ retryAfter: 1_000 })
    expect(scene.at(0).acquire(lock('second', { ttl: 1_500 }))).toMatchObject({ retryAfter: 500 })
    expect(scene.at(900).acquire(lock('second'))).toMatchObject({ retryAfter: 100 })
    // It sees the end, so the grace period counts from here.
    expect(scene.at(1_040).acquire(lock('second'))).toMatchObject({ retryAfter: GRACE })
    expect(scene.at(1_090).acquire(lock('try', { queue: false }))).toMatchObject({ retryAfter: LIFETIME - 1_090 })
  },

  'a claim that does not fit does not ask at once because the first waiter fits and let its grace period pass'(scene) {
    for (const id of ['holder', 'leaver', 'dead']) scene.at(0).acquire(lock(id, { limit: 2 }))
    scene.at(0).acquire(lock('wide', { limit: 2, units: 2 }))
    scene.at(10).release('leaver')
    expect(scene.at(1_000).acquire(lock('wide'))).toMatchObject({ ahead: 1, retryAfter: LIFETIME / 3 })
  },

  'a lease that was written before the clock was set back lasts its ttl from now'(scene) {
    scene.at(100_000).acquire(lock('holder'))
    expect(scene.at(50_000).acquire(lock('other'))).toMatchObject({ retryAfter: LIFETIME / 3 })
    expect(scene.at(50_000 + TTL).acquire(lock('other'))).toMatchObject({ held: true })
  },

  'a position from before the clock was set back lasts its lifetime from now'(scene) {
    for (const id of ['holder', 'dead']) scene.at(100_000).acquire(lock(id))
    expect(scene.at(50_000).acquire(lock('second'))).toMatchObject({ ahead: 1 })
    expect(scene.at(50_000 + LIFETIME - 1).acquire(lock('second'))).toMatchObject({ ahead: 1 })
    expect(scene.at(50_000 + LIFETIME).acquire(lock('second'))).toMatchObject({ ahead: 0 })
  },

  'break ends all leases, or the one with a slot or a token, and outranks them'(scene) {
    const [a, b] = ['a', 'b'].map(id => scene.at(0).acquire(lock(id, { limit: 3 })))
    expect([a, b]).toMatchObject([
      { token: 1, slots: [0] },
      { token: 2, slots: [1] },
    ])
    expect(scene.at(1).break({ token: 3 })).toBeUndefined()
    expect(scene.at(1).break({ slot: 1 })).toEqual({ ids: ['b'], token: 3 })
    expect(scene.at(1).renew('b', TTL)).toBeUndefined()
    expect(scene.at(1).break()).toEqual({ ids: ['a'], token: 4 })
    expect(scene.at(1).acquire(lock('c'))).toMatchObject({ token: 5 })
  },

  'readers and permits get the lowest free slots, and a writer waits for all of them'(scene) {
    const limit = 2 ** 31 - 1
    for (const id of ['a', 'b', 'c']) scene.at(0).acquire(lock(id, { limit }))
    scene.at(0).release('b')
    expect(scene.at(1).acquire(lock('d', { limit: 4, units: 2 }))).toMatchObject({ slots: [1, 3] })
    expect(scene.at(1).acquire(lock('e', { limit: 4 }))).toMatchObject({ held: false })
    expect(scene.at(1).acquire(lock('f', { limit }))).toMatchObject({ held: false, ahead: 1 })
  },
}

/** Runs all scenes. The names of those that fail. */
export function failures(Class: NameClass, unused: NameState): string[] {
  return Object.entries(scenes).flatMap(([what, play]) => {
    try {
      play(new Scene(Class, unused))
      return []
    } catch {
      return [what]
    }
  })
}
