import { expect, test } from 'vitest'
import { commonToken, latest, mostAlike, recordsOf } from './holdings.ts'
import type { Sight } from './member.ts'

function sight(id: string | undefined, remaining = 0, queue: readonly string[] = []): Sight {
  return {
    holder: id === undefined ? undefined : { id, token: 7, owner: id, note: '', revision: 0, remaining },
    queue: queue.map(each => ({ id: each, owner: each, note: '', remaining: 1_000 })),
  }
}

test('the token of a lease is that of a majority', () => {
  expect(commonToken([{ token: 9 }, { token: 7 }, { token: 7 }])).toBe(7)
  for (const holdings of [
    [{ token: 9 }, { token: 7 }],
    [{ token: 7 }, { token: 9 }],
  ])
    expect(commonToken(holdings), 'of a lease whose other server is missing, and a late vote').toBe(7)
  expect(mostAlike([])).toEqual([])
})

test('a lease is held by a majority, for as long as a majority holds it', () => {
  const [record, ...others] = recordsOf('a', [sight('x', 300), sight('x', 100), sight('x', 200)], 2, 0)
  expect(record).toMatchObject({ owner: 'x', state: 'held', token: 7n, remaining: 200 })
  expect(others).toEqual([])
})

test('the note of a lease is the latest that a node has, whichever answers first', () => {
  const noted = (note: string, revision: number): Sight => {
    const { holder, queue } = sight('x', 300)
    return { holder: holder && { ...holder, note, revision }, queue }
  }
  const sights = [noted('second', 8), noted('third', 9), noted('at first', 0), noted('third', 9), noted('restored', 1)]
  for (let turn = 0; turn < sights.length; turn += 1) {
    sights.push(sights.shift() as Sight)
    expect(recordsOf('a', sights, 3, 0)).toMatchObject([{ note: 'third', token: 7n }])
  }
  expect(latest([])).toBeUndefined()
})

test('votes of a minority are no lease, unless the missing nodes may have voted too', () => {
  expect(recordsOf('a', [sight('x', 300), sight(undefined), sight(undefined)], 2, 0)).toEqual([])
  expect(recordsOf('a', [sight('x', 300), sight(undefined)], 2, 1)).toMatchObject([{ owner: 'x', remaining: 300 }])
})

test('waiters are sorted by their mean position, each once, without the holder', () => {
  const sights = [sight('h', 9, ['x', 'y', 'z']), sight('h', 9, ['x', 'z', 'y']), sight('h', 9, ['h', 'y'])]
  const waiters = recordsOf('a', sights, 2, 0).slice(1)
  expect(waiters.map(({ owner, position }) => [owner, position])).toEqual([
    ['x', 0],
    ['y', 1],
    ['z', 2],
  ])
})
