import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { expect, expectTypeOf, test } from 'vitest'
import { LeaseError } from './errors.ts'
import type { LeaseRecord } from './store.ts'

test.each([
  ['STORE_UNAVAILABLE', true],
  ['OUTCOME_UNKNOWN', true],
  ['BUSY', true],
  ['TOO_MANY_WAITERS', true],
  ['ACCESS_DENIED', false],
  ['NOT_MIGRATED', false],
  ['FORMAT_MISMATCH', false],
  ['LEASE_LOST', false],
  ['MAX_HOLD', false],
  ['STALE_TOKEN', false],
  ['INVALID_ARGUMENT', false],
  ['DRIVER_MISSING', false],
  ['CLOSED', false],
] as const)('%s is retryable by default: %s', (code, retryable) => {
  expect(new LeaseError(code, 'x').retryable).toBe(retryable)
  expect(new LeaseError(code, 'x', { retryable: undefined }).retryable).toBe(retryable)
  expect(new LeaseError(code, 'x', { retryable: !retryable }).retryable).toBe(!retryable)
})

test('a LeaseError is an Error with code, message and cause', () => {
  const cause = new Error('socket')
  const error = new LeaseError('STORE_UNAVAILABLE', 'the store failed', { cause, retryAfter: 5 })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({ name: 'LeaseError', code: 'STORE_UNAVAILABLE', message: 'the store failed', cause })
  expect(error.stack).toMatch(/^LeaseError: the store failed\n/)
  expect('cause' in new LeaseError('CLOSED', 'x')).toBe(false)
  expect(new LeaseError('CLOSED', 'x', { cause: undefined })).toHaveProperty('cause', undefined)
})

test('LeaseError.is accepts errors of another copy of the package, and nothing else', async () => {
  const copy: typeof import('./errors.ts') = await import(`./errors.ts?${'copy'}`)
  expect(copy.LeaseError).not.toBe(LeaseError)
  const foreign = new copy.LeaseError('CLOSED', 'x')
  expect(foreign).not.toBeInstanceOf(LeaseError)
  expect(LeaseError.is(foreign)).toBe(true)
  expect(copy.LeaseError.is(new LeaseError('CLOSED', 'x'))).toBe(true)
  for (const other of [new Error('x'), { code: 'CLOSED', name: 'LeaseError' }, null, undefined, 'CLOSED', () => {}])
    expect(LeaseError.is(other)).toBe(false)
})

test('LeaseError.is distinguishes codes', () => {
  const error = new LeaseError('MAX_HOLD', 'x')
  expect(LeaseError.is(error, 'MAX_HOLD')).toBe(true)
  expect(LeaseError.is(error, 'LEASE_LOST')).toBe(false)
  expect(LeaseError.is(Object.assign(new Error('x'), { code: 'MAX_HOLD' }), 'MAX_HOLD')).toBe(false)
})

test('the type of an error narrows by its code', () => {
  const error: unknown = new LeaseError('STALE_TOKEN', 'x', { token: 1n, highest: 2n })
  if (LeaseError.is(error, 'STALE_TOKEN')) expectTypeOf(error.token).toEqualTypeOf<bigint>()
  if (LeaseError.is(error, 'BUSY')) expectTypeOf(error.holder).toEqualTypeOf<LeaseRecord | undefined>()
  if (LeaseError.is(error, 'BUSY')) expectTypeOf(error.waited).toEqualTypeOf<number>()
  if (LeaseError.is(error, 'CLOSED')) expectTypeOf(error.waited).toEqualTypeOf<undefined>()
  if (LeaseError.is(error, 'LEASE_LOST')) expectTypeOf(error.result).toEqualTypeOf<unknown>()
  if (error instanceof LeaseError && error.code === 'CLOSED') expectTypeOf(error.token).toEqualTypeOf<undefined>()
  if (!LeaseError.is(error)) return
  expectTypeOf(error.token).toEqualTypeOf<bigint | undefined>()
  expectTypeOf(error).toEqualTypeOf<LeaseError>()
  switch (error.code) {
    case 'STALE_TOKEN':
      expectTypeOf(error.highest).toEqualTypeOf<bigint>()
      expectTypeOf(error.holder).toEqualTypeOf<undefined>()
      break
    case 'MAX_HOLD':
      expectTypeOf(error.result).toEqualTypeOf<unknown>()
      expectTypeOf(error.token).toEqualTypeOf<undefined>()
      break
    default:
      expectTypeOf(error.highest).toEqualTypeOf<undefined>()
  }
})

test('an error is written as JSON with the token of its holder as decimal digits', () => {
  const token = 2n ** 60n + 1n
  const holder = { name: 'a', state: 'held', owner: 'o', note: '', token, remaining: 7 } as const
  const error = new LeaseError('BUSY', 'held', { leaseName: 'a', holder, waited: 5, cause: new Error('x'), result: 1n })
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    name: 'LeaseError',
    code: 'BUSY',
    message: 'held',
    leaseName: 'a',
    retryable: true,
    waited: 5,
    holder: { name: 'a', state: 'held', owner: 'o', note: '', token: '1152921504606846977', remaining: 7 },
  })
})

/** `error` as the last of `depth` causes. */
function wrapped(error: unknown, depth: number): unknown {
  return depth === 0 ? error : wrapped(new Error('wrapped', { cause: error }), depth - 1)
}

test('F5: LeaseError.from finds the LeaseError among the causes, at most ten deep', () => {
  const error = new LeaseError('LEASE_LOST', 'x')
  for (const depth of [0, 1, 10]) expect(LeaseError.from(wrapped(error, depth))).toBe(error)
  expect(LeaseError.from(wrapped(error, 11))).toBeUndefined()
  expect(LeaseError.from({ cause: error })).toBe(error)
  const cycle = new Error('a', { cause: new Error('b') })
  Object.assign(cycle.cause as Error, { cause: cycle })
  for (const other of [cycle, new Error('x'), null, undefined, 'CLOSED']) expect(LeaseError.from(other)).toBeUndefined()
})

test('F5: LeaseError.from finds the loss in the AbortError of a function that was given the signal', async () => {
  const error = new LeaseError('LEASE_LOST', 'x')
  const thrown = await readFile('/dev/null', { signal: AbortSignal.abort(error) }).catch(reason => reason)
  expect(thrown).toMatchObject({ name: 'AbortError' })
  expect(LeaseError.from(thrown)).toBe(error)
})

test('F12: an error has no properties without a value, so a logged error is short', () => {
  const error = new LeaseError('CLOSED', 'over', { leaseName: undefined, holder: undefined })
  expect(Object.keys(error).sort()).toEqual(['code', 'name', 'retryable'])
  expect(error.leaseName).toBeUndefined()
  expect(inspect(error)).not.toContain('undefined')
  const stale = new LeaseError('STALE_TOKEN', 'x', {
    leaseName: 'a',
    retryAfter: 0,
    token: 0n,
    highest: 2n,
    result: null,
  })
  expect(stale).toMatchObject({ leaseName: 'a', retryAfter: 0, token: 0n, highest: 2n, result: null })
})

test('M8: a long message is clipped, because a server may answer with any text', () => {
  const { message } = new LeaseError('STORE_UNAVAILABLE', 'x'.repeat(1_000_000))
  expect(message).toBe(`${'x'.repeat(2_000)}…`)
})

test('a message with the text of a server controls no terminal', () => {
  const { message } = new LeaseError('STORE_UNAVAILABLE', 'it said \u001b[2J\u009b1m\nand more')
  expect(message).toBe('it said \\u{1b}[2J\\u{9b}1m\nand more')
})
