import { describe, expect, test } from 'vitest'
import { stage } from '../../test/scripted-store.ts'
import { failureOf } from '../../test/support.ts'
import { connect } from '../connect.ts'
import { createLocks, type Locks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'

/** Calls as a program without types may make them. */
type Untyped = (...given: unknown[]) => Promise<unknown>

const ttlExpected = 'a whole number of milliseconds from 10 to 2147483647'
const waitExpected = '0 or more milliseconds, or Infinity'

const names: [name: unknown, message: string][] = [
  ['', 'the name of a lease is empty: give 1 to 255 bytes of text'],
  [undefined, 'the name of a lease must be a string, not undefined'],
  [null, 'the name of a lease must be a string, not null'],
  [7, 'the name of a lease must be a string, not 7'],
  [{ toString: () => 'a' }, 'the name of a lease must be a string, not an object'],
  ['x'.repeat(256), 'the name of a lease has 256 bytes of UTF-8: at most 255 are allowed'],
  ['é'.repeat(128), 'the name of a lease has 256 bytes of UTF-8: at most 255 are allowed'],
  ['a\nb', 'the name of a lease has a control character ("a\\nb"): remove it'],
  ['a\u0000', 'the name of a lease has a control character ("a\\u0000"): remove it'],
  ['a\u009b', 'the name of a lease has a control character ("a\\u{9b}"): remove it'],
  ['a\ud800', 'the name of a lease has half a surrogate pair ("a\\ud800"): it is not Unicode'],
]

const options: [options: unknown, message: string][] = [
  [null, 'must be an object, not null'],
  [5_000, 'must be an object, not 5000'],
  ['5s', 'must be an object, not "5s"'],
  [[], 'must be an object, not an array'],
  [{ tll: 5_000 }, 'has no option "tll", only ttl, note, owner, heartbeat, maxBlocked, maxHold'],
  [{ ttl: 0 }, `ttl must be ${ttlExpected}, not 0`],
  [{ ttl: 9 }, `ttl must be ${ttlExpected}, not 9`],
  [{ ttl: -1_000 }, `ttl must be ${ttlExpected}, not -1000`],
  [{ ttl: Number.NaN }, `ttl must be ${ttlExpected}, not NaN`],
  [{ ttl: 10.5 }, `ttl must be ${ttlExpected}, not 10.5`],
  [{ ttl: 2_147_483_648 }, `ttl must be ${ttlExpected}, not 2147483648`],
  [{ ttl: Number.POSITIVE_INFINITY }, `ttl must be ${ttlExpected}, not Infinity`],
  [{ ttl: '10s' }, `ttl must be ${ttlExpected}, not "10s"`],
  [{ ttl: 10_000n }, `ttl must be ${ttlExpected}, not 10000n`],
  [{ ttl: null }, `ttl must be ${ttlExpected}, not null`],
  [{ maxHold: 0 }, `maxHold must be ${ttlExpected}, not 0`],
  [{ note: 7 }, 'note must be a string, not 7'],
  [{ note: 'x'.repeat(256) }, 'note has 256 bytes of UTF-8: at most 255 are allowed'],
  [{ note: 'a\tb' }, 'note has a control character ("a\\tb"): remove it'],
  [{ owner: () => 'me' }, 'owner must be a string, not a function'],
  [{ owner: 'x'.repeat(256) }, 'owner has 256 bytes of UTF-8: at most 255 are allowed'],
  [{ heartbeat: 1 }, "heartbeat must be true, false or 'thread', not 1"],
  [{ heartbeat: 'thread' }, "heartbeat: 'thread' needs a store that a second thread can open"],
  [{ maxBlocked: Number.POSITIVE_INFINITY }, `maxBlocked must be ${ttlExpected}, not Infinity`],
]

const waits: [options: unknown, message: string][] = [
  [{ wait: -1 }, `wait must be ${waitExpected}, not -1`],
  [{ wait: Number.NaN }, `wait must be ${waitExpected}, not NaN`],
  [{ wait: '5s' }, `wait must be ${waitExpected}, not "5s"`],
]

const perCall: [options: unknown, message: string][] = [
  [{ signal: null }, 'signal must be an AbortSignal, not null'],
  [{ signal: new AbortController() }, 'signal must be an AbortSignal, not an object'],
  [{ signal: 'SIGINT' }, 'signal must be an AbortSignal, not "SIGINT"'],
  [{ maxBlocked: 5_000 }, "maxBlocked needs heartbeat: 'thread'"], // the default is true
  [{ heartbeat: true, maxBlocked: 5_000 }, "maxBlocked needs heartbeat: 'thread'"],
  [{ heartbeat: false, maxBlocked: 5_000 }, "maxBlocked needs heartbeat: 'thread'"],
]

const work = (): void => {}

const calls: [call: string, run: (locks: Locks, given: unknown) => Promise<unknown>, bad: typeof options][] = [
  ['acquire', (locks, given) => (locks.acquire as Untyped)('a', given), [...options, ...waits, ...perCall]],
  ['tryAcquire', (locks, given) => (locks.tryAcquire as Untyped)('a', given), [...options, ...perCall]],
  ['using', (locks, given) => (locks.using as Untyped)('a', given, work), [...options, ...waits, ...perCall]],
  [
    'close',
    (locks, given) => (locks.close as Untyped)(given),
    [
      ...options.slice(0, 4),
      [{ grac: 1 }, 'close has no option "grac", only grace'],
      [{ grace: -1 }, `grace must be ${waitExpected}, not -1`],
      [{ grace: Number.NaN }, `grace must be ${waitExpected}, not NaN`],
    ],
  ],
]

describe.each(calls)('%s', (_, run, bad) => {
  test.each(bad)('rejects the options %o', async (given, message) => {
    const { locks, store } = stage()
    await expect(run(locks, given)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      retryable: false,
      message: expect.stringContaining(message),
    })
    expect(store.calls).toEqual([])
    await expect(locks.acquire('a')).resolves.toBeDefined()
  })
})

const named: [call: string, run: (locks: Locks, name: unknown) => Promise<unknown>][] = [
  ['acquire', (locks, name) => (locks.acquire as Untyped)(name)],
  ['tryAcquire', (locks, name) => (locks.tryAcquire as Untyped)(name)],
  ['using', (locks, name) => (locks.using as Untyped)(name, work)],
  ['inspect', (locks, name) => (locks.inspect as Untyped)(name)],
  ['break', (locks, name) => (locks.break as Untyped)(name)],
]

describe.each(named)('%s', (_, run) => {
  test.each(names)('rejects the name %o', async (name, message) => {
    const { locks, store } = stage()
    await expect(run(locks, name)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message })
    expect(store.calls).toEqual([])
  })
})

test('using rejects work that is not a function, before it acquires', async () => {
  const { locks, store } = stage()
  await expect((locks.using as Untyped)('a', { ttl: 1_000 })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/work must be a function.* come last: using\(name, options, work\)/),
  })
  expect(store.calls).toEqual([])
})

test('several names, and a number in the place of options, are refused with what to write', async () => {
  const { locks } = stage()
  await expect((locks.acquire as Untyped)(['a', 'b'])).rejects.toThrow('for several use locks.all(names)')
  await expect((locks.acquire as Untyped)('a', 5_000)).rejects.toThrow('not 5000, such as { wait: 5_000 }')
  await expect((locks.using as Untyped)('a', 5_000, work)).rejects.toThrow('not 5000, such as { wait: 5_000 }')
  await expect(connect({} as never)).rejects.toThrow('for a client: createLocks(redis(client))')
})

test.each(['lead', 'election'])('%s with work is refused with how to run it', async verb => {
  const { locks } = stage()
  const call = (): unknown => (locks as unknown as Record<string, Untyped>)[verb]?.('a', work)
  expect(call).toThrow(`${verb} takes no work: use election(name).run(work)`)
})

test('list rejects an invalid prefix, and break invalid options', async () => {
  const { locks } = stage()
  for (const [given, message] of [
    [7, 'the options of break must be an object, not 7'],
    [{ by: 7 }, 'by must be a string, not 7'],
  ])
    await expect((locks.break as Untyped)('a', given)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message })
  const list = (locks.list as unknown as (prefix: unknown) => AsyncGenerator)(7)
  await expect(list.next()).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'the prefix of names must be a string, not 7',
  })
})

test.each([...options, ...waits, [{ signal: new AbortController().signal }, 'Locks has no option "signal"'] as const])(
  'createLocks throws for the defaults %o',
  (defaults, message) => {
    expect(() => createLocks(memory(), defaults as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) }),
    )
  },
)

test.each([
  ['all', ['a']],
  ['readWrite', 'a'],
  ['semaphore', 'a', { limit: 1 }],
])('%s refuses options that it would ignore', (verb, ...given) => {
  const locks = createLocks(memory()) as unknown as Record<string, (...given: unknown[]) => unknown>
  const call = (): unknown => locks[verb as string]?.(...given, { wait: 1 })
  expect(call).toThrow(/takes nothing else, but got an object: give options to using/)
})

test.each([undefined, null, {}, 'memory:', memory])('createLocks throws for the store %o', store => {
  expect(() => createLocks(store as never)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: 'createLocks needs a store, such as sqlite(path) or redis(client); for a URL await connect(url)',
    }),
  )
})

test('createLocks throws for the locks that connect makes, and for their promise', async () => {
  const promise = connect('memory:')
  for (const given of [promise, await promise])
    expect(() => createLocks(given as never)).toThrow(/createLocks needs a store.* for a URL await connect/)
})

test('options that are explicitly undefined mean the defaults', async () => {
  const { locks } = stage({
    ttl: 3_000,
    note: 'n',
    owner: 'me',
    wait: 5,
    heartbeat: false,
    maxBlocked: 5_000,
    maxHold: undefined,
  })
  const lease = await locks.acquire('a', {
    ttl: undefined,
    note: undefined,
    owner: undefined,
    wait: undefined,
    signal: undefined,
    heartbeat: undefined,
    maxHold: undefined,
  })
  expect(lease).toMatchObject({ ttl: 3_000, owner: 'me' })
  expect(await locks.inspect('a')).toMatchObject({ holders: [{ note: 'n', remaining: 3_000 }] })
  await expect(locks.acquire('b', undefined)).resolves.toBeDefined()
})

test('later changes to the object of the defaults have no effect', async () => {
  const defaults = { ttl: 3_000 }
  const { locks } = stage(defaults)
  defaults.ttl = Number.NaN
  expect(await locks.acquire('a')).toMatchObject({ ttl: 3_000 })
})

test('no caller can acquire the marker of a run, which would make --skip-if-ran-since skip', async () => {
  const locks = createLocks(memory())
  const error = await failureOf(locks.tryAcquire('job\u241fran'))
  expect(error).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('reserved for markers'),
  })
  await locks.close()
})
