import { describe, expect, test } from 'vitest'
import { follow } from '../../test/scripted-store.ts'
import { VirtualClock } from '../testing/clock.ts'
import { LeaseError } from './errors.ts'
import { backoff, Cancel, pause, request } from './request.ts'

const never = new Promise<never>(() => {})

describe('a request', () => {
  test('resolves to the answer and leaves no timer', async () => {
    const clock = new VirtualClock()
    expect(await request(clock, 100, async () => 7)).toBe(7)
    expect(clock.pending).toBe(0)
  })

  test('without an answer within its limit rejects OUTCOME_UNKNOWN, and only then aborts its signal', async () => {
    const clock = new VirtualClock()
    let signal: AbortSignal | undefined
    const asked = follow(
      request(clock, 100.4, given => {
        signal = given
        return never
      }),
    )
    await clock.advance(100)
    expect(asked.settled).toBe(false)
    expect(signal?.aborted).toBe(false)
    await clock.advance(1)
    expect(asked.error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: 'the store did not answer within 100 ms: check its address, and that it runs',
    })
    expect(signal?.reason).toBe(asked.error)
  })

  test.each([
    ['rejects', () => Promise.reject(new Error('cut off'))],
    [
      'throws at once',
      () => {
        throw new Error('cut off')
      },
    ],
  ])('whose store %s with an error of its own rejects STORE_UNAVAILABLE', async (_, send) => {
    const clock = new VirtualClock()
    await expect(request(clock, 100, send)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'the store failed: cut off',
      cause: { message: 'cut off' },
    })
    expect(clock.pending).toBe(0)
  })

  test('whose store rejects with a value that is no error explains it', async () => {
    const { promise, reject } = Promise.withResolvers<never>()
    reject('NOAUTH')
    await expect(request(new VirtualClock(), 100, () => promise)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'the store failed: NOAUTH',
      cause: 'NOAUTH',
    })
  })

  test('passes on a LeaseError of the store unchanged', async () => {
    const error = new LeaseError('DRIVER_MISSING', 'npm install ioredis')
    await expect(request(new VirtualClock(), 100, () => Promise.reject(error))).rejects.toBe(error)
  })

  test('rejects at once with the reason when it is cancelled, and a late answer changes nothing', async () => {
    const clock = new VirtualClock()
    const cancel = new Cancel()
    const { promise, resolve } = Promise.withResolvers<string>()
    const asked = follow(request(clock, 100, () => promise, { cancel }))
    cancel.cancel('enough')
    cancel.cancel('again')
    await clock.advance(0)
    expect(asked.error).toBe('enough')
    expect(() => cancel.throwIfCancelled()).toThrow('enough')
    expect(clock.pending).toBe(0)
    resolve('late')
    await clock.advance(0)
    expect(asked).toMatchObject({ settled: true, value: undefined, error: 'enough' })
  })

  test('is not sent if it was already cancelled', async () => {
    const cancel = new Cancel()
    cancel.cancel('enough')
    let sent = false
    const asked = request(new VirtualClock(), 100, async () => (sent = true), { cancel })
    await expect(asked).rejects.toBe('enough')
    expect(sent).toBe(false)
  })

  test('with a late answer does not keep a later one from being cancelled', async () => {
    const clock = new VirtualClock()
    const cancel = new Cancel()
    const first = Promise.withResolvers<string>()
    const timedOut = follow(request(clock, 100, () => first.promise, { cancel }))
    await clock.advance(100)
    expect(timedOut.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    const second = follow(request(clock, 100, () => never, { cancel }))
    first.resolve('late')
    await clock.advance(50)
    cancel.cancel('enough')
    await clock.advance(0)
    expect(second.error).toBe('enough')
    expect(clock.pending).toBe(0)
  })
})

describe('a pause', () => {
  test('ends after its time, or when it is woken, and leaves no timer', async () => {
    const clock = new VirtualClock()
    const slept = follow(pause(clock, 50))
    let wake = (): void => {}
    const woken = follow(
      pause(clock, 1_000, {
        arm: given => {
          wake = given
        },
      }),
    )
    await clock.advance(50)
    expect([slept.settled, woken.settled]).toEqual([true, false])
    wake()
    wake()
    await clock.advance(0)
    expect(woken.settled).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('rejects with the reason if it is cancelled before or meanwhile', async () => {
    const clock = new VirtualClock()
    const cancel = new Cancel()
    const meanwhile = follow(pause(clock, 50, { cancel }))
    cancel.cancel('enough')
    cancel.cancel('again')
    const before = follow(pause(clock, 50, { cancel }))
    await clock.advance(0)
    expect([meanwhile.error, before.error]).toEqual(['enough', 'enough'])
    expect(clock.pending).toBe(0)
  })
})

test('the pauses after failures double from 20 up to 1,000 ms, minus up to a random half', () => {
  const most = Array.from({ length: 10 }, (_, failures) => backoff(failures + 1, () => 1))
  expect(most).toEqual([20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000])
  expect(backoff(1, () => 0)).toBe(10)
  expect(backoff(5_000, () => 0)).toBe(500)
})
