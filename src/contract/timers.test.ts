import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ROOT, scriptNode } from '../../test/script-node.ts'
import { systemClock } from './time.ts'
import { LONGEST_DELAY } from './timers.ts'

describe('a timer', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('beyond 2^31 ms does not fire at once', async () => {
    for (const delay of [LONGEST_DELAY + 1, Number.POSITIVE_INFINITY]) {
      let fired = false
      const stop = systemClock().after(delay, () => {
        fired = true
      })
      await vi.advanceTimersByTimeAsync(1_000_000)
      expect(fired).toBe(false)
      stop()
    }
    expect(vi.getTimerCount()).toBe(0)
  })

  test('fires once, unless it was cancelled', async () => {
    const fired: string[] = []
    const clock = systemClock()
    clock.after(10, () => fired.push('kept'))
    clock.after(-10, () => fired.push('overdue'))
    const stop = clock.after(10, () => fired.push('stopped'))
    stop()
    await vi.advanceTimersByTimeAsync(100)
    stop()
    expect(fired).toEqual(['overdue', 'kept'])
  })

  test('shares one timer of Node with others of equal duration, and fires at its own time', async () => {
    const fired: string[] = []
    const clock = systemClock()
    clock.after(100, () => fired.push('first'))
    await vi.advanceTimersByTimeAsync(40)
    clock.after(100, () => fired.push('second'))
    clock.after(100, () => fired.push('third'))
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(60)
    expect(fired).toEqual(['first'])
    await vi.advanceTimersByTimeAsync(39)
    expect(fired).toEqual(['first'])
    await vi.advanceTimersByTimeAsync(1)
    expect(fired).toEqual(['first', 'second', 'third'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('can be cancelled by one that is due at the same time', async () => {
    const fired: string[] = []
    const clock = systemClock()
    clock.after(100, () => {
      fired.push('first')
      stop()
    })
    const stop = clock.after(100, () => fired.push('second'))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(fired).toEqual(['first'])
  })

  test('still fires if fake timers were installed or removed after another of the same duration', async () => {
    vi.useRealTimers()
    const clock = systemClock()
    clock.after(50, () => {})
    vi.useFakeTimers()
    let fired = false
    clock.after(50, () => {
      fired = true
    })
    await vi.advanceTimersByTimeAsync(50)
    expect(fired).toBe(true)
    clock.after(50, () => {})
    vi.useRealTimers()
    await new Promise<void>(resolve => clock.after(50, resolve))
  })

  test('of a duration that is no longer used is dropped within ten seconds, or at once if it is longer', async () => {
    const clock = systemClock()
    for (let delay = 1; delay <= 20_000; delay += 1) clock.after(delay, () => {})()
    expect(vi.getTimerCount()).toBe(10_000)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('on the timers of Node', () => {
  function awake(): number {
    return process.getActiveResourcesInfo().filter(each => each === 'Timeout' || each === 'Immediate').length
  }

  test('only foreground timers keep the process alive', () => {
    const clock = systemClock()
    const before = awake()
    const stopBackground = clock.after(1_000, () => {}, true)
    expect(awake()).toBe(before)
    const stops = [clock.after(1_000, () => {}), clock.after(1_000, () => {})]
    expect(awake()).toBe(before + 1)
    for (const stop of stops) stop()
    for (const stop of stops) stop()
    expect(awake()).toBe(before)
    const stopAgain = clock.after(1_000, () => {})
    expect(awake()).toBe(before + 1)
    stopAgain()
    stopBackground()
    expect(awake()).toBe(before)
  })

  test('without a delay it fires after pending input was read', async () => {
    const clock = systemClock()
    const fired: string[] = []
    clock.after(0, () => fired.push('called off'))()
    await new Promise<void>(resolve => {
      clock.after(0, resolve)
      queueMicrotask(() => fired.push('microtask'))
    })
    expect(fired).toEqual(['microtask'])
  })
})

test('a timer without a delay fires in the background although nothing else happens for long', async () => {
  const script = `
    import { systemClock } from ${JSON.stringify(join(ROOT, 'src/contract/time.ts'))}
    await new Promise(resolve => setTimeout(resolve, 10))
    const other = setTimeout(() => {}, 5_000)
    const started = performance.now()
    const fired = () => (clearTimeout(other), console.log(performance.now() - started < 4_000))
    systemClock().after(0, fired, true)`
  const { stdout } = await scriptNode(['--input-type=module', '-e', script], { folder: ROOT })
  expect(stdout).toBe('true\n')
})
