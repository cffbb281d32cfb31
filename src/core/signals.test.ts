import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Signals } from './signals.ts'

test('any number of actions use one listener, which is removed with the last of them', () => {
  const signals = new Signals()
  const { signal } = new AbortController()
  const stops = Array.from({ length: 1_000 }, () => signals.onAbort(signal, () => {}))
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  for (const stop of stops.slice(1)) stop()
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  stops[0]?.()
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

test('an abort runs all actions once, in order, with the reason', () => {
  const signals = new Signals()
  const controller = new AbortController()
  const ran: unknown[] = []
  const twice = (reason: unknown): void => void ran.push(reason)
  signals.onAbort(controller.signal, twice)
  signals.onAbort(controller.signal, twice)
  signals.onAbort(controller.signal, reason => ran.push(['last', reason]))
  controller.abort('enough')
  controller.abort('again')
  expect(ran).toEqual(['enough', 'enough', ['last', 'enough']])
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
})

test('a signal that has aborted runs the action at once, and without a signal nothing runs', () => {
  const signals = new Signals()
  const ran: unknown[] = []
  signals.onAbort(AbortSignal.abort('before'), reason => ran.push(reason))()
  signals.onAbort(undefined, reason => ran.push(reason))()
  expect(ran).toEqual(['before'])
})

test('an action may stop itself and others, and add one, while they run', () => {
  const signals = new Signals()
  const controller = new AbortController()
  const { signal } = controller
  const ran: string[] = []
  const stopFirst = signals.onAbort(signal, () => {
    ran.push('first')
    stopFirst()
    stopSecond()
    signals.onAbort(signal, () => ran.push('added'))
  })
  const stopSecond = signals.onAbort(signal, () => ran.push('second'))
  signals.onAbort(signal, () => ran.push('third'))
  controller.abort()
  expect(ran).toEqual(['first', 'added', 'third'])
})

test('an action that stops late does not remove the listener of later ones', () => {
  const signals = new Signals()
  const controller = new AbortController()
  const ran: string[] = []
  const stop = signals.onAbort(controller.signal, () => ran.push('old'))
  stop()
  signals.onAbort(controller.signal, () => ran.push('new'))
  stop()
  controller.abort()
  expect(ran).toEqual(['new'])
})

test('an abort runs exactly the remaining actions', () => {
  const commands = fc.array(fc.tuple(fc.nat(2), fc.oneof(fc.constant('add' as const), fc.nat(20))), { maxLength: 40 })
  fc.assert(
    fc.property(commands, steps => {
      const signals = new Signals()
      const controllers = [0, 1, 2].map(() => new AbortController())
      const added: { on: number; stop: () => void; stopped: boolean }[] = []
      const ran: number[] = []
      for (const [on, command] of steps) {
        const controller = controllers[on]
        const target = command === 'add' ? undefined : added[command]
        if (target) {
          target.stop()
          target.stopped = true
        } else if (controller) {
          const index = added.length
          const stop = signals.onAbort(controller.signal, () => ran.push(index))
          added.push({ on, stop, stopped: false })
        }
        for (const [index, { signal }] of controllers.entries()) {
          const live = added.some(each => each.on === index && !each.stopped)
          expect(getEventListeners(signal, 'abort')).toHaveLength(live ? 1 : 0)
        }
      }
      controllers[0]?.abort()
      expect(ran).toEqual([...added.keys()].filter(index => added[index]?.on === 0 && !added[index]?.stopped))
    }),
  )
})
