import { expect, test } from 'vitest'
import { all, follow, stage } from '../test/scripted-store.ts'

test('a list that is left early ends the reading of the store', async () => {
  const { locks, store } = stage()
  const ended: string[] = []
  store.rule('inspect', (_, signal) => {
    signal.addEventListener('abort', () => ended.push('signal'))
    return (async function* () {
      try {
        for (;;) yield { name: 'a', state: 'held', owner: 'o', note: '', remaining: 1 } as const
      } finally {
        ended.push('iteration')
      }
    })()
  })
  for await (const record of locks.list()) {
    expect(record.name).toBe('a')
    break
  }
  expect(ended).toEqual(['signal', 'iteration'])
})

test.each(['inspect', 'list'] as const)('%s rejects STORE_UNAVAILABLE when the store throws at once', async call => {
  const { locks, store } = stage()
  store.rule('inspect', () => {
    throw new Error('no such table')
  })
  const asked = call === 'inspect' ? locks.inspect('a') : all(locks.list())
  await expect(asked).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: 'the store failed: no such table' })
})

test('a store that stops answering in the middle of a list ends it with OUTCOME_UNKNOWN', async () => {
  const { locks, store, clock } = stage()
  store.rule('inspect', () =>
    (async function* () {
      yield { name: 'a', state: 'held', owner: 'o', note: '', remaining: 1 }
      await new Promise(() => {})
    })(),
  )
  const names: string[] = []
  const read = async (): Promise<void> => {
    for await (const { name } of locks.list()) names.push(name)
  }
  const list = follow(read())
  await clock.advance(3_333)
  expect(list.settled).toBe(false)
  await clock.advance(1)
  expect(list.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(names).toEqual(['a'])
  expect(clock.pending).toBe(0)
})

test('a list has all holders and waiters of names that begin alike, in whole milliseconds', async () => {
  const { locks, other, clock } = stage({ ttl: 5_000 })
  await other.acquire('a/1', { note: 'first' })
  await other.acquire('b')
  void locks.acquire('a/1')
  await clock.advance(0.4)
  const records = await all(locks.list('a/'))
  expect(records).toMatchObject([
    { name: 'a/1', state: 'held', owner: 'other', note: 'first', remaining: 10_000, token: expect.any(BigInt) },
    { name: 'a/1', state: 'waiting', note: '', remaining: 5_000, position: 0 },
  ])
  expect(await locks.inspect('a/1')).toEqual({ name: 'a/1', holder: records[0], waiters: [records[1]] })
  expect(JSON.parse(JSON.stringify(records))[0].token).toBe(String(records[0]?.token))
  expect((await all(locks.list())).map(({ name }) => name)).toEqual(['a/1', 'a/1', 'b'])
  expect(await locks.inspect('c')).toEqual({ name: 'c', holder: undefined, waiters: [] })
})
