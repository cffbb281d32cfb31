import { expect, test } from 'vitest'
import { Changes } from './changes.ts'

test('a takeover is not pushed out by the releases that follow, of which the last 50 are kept', () => {
  const changes = new Changes()
  const change = { name: 'job', from: 'a', to: 'b' }
  changes.add({ ...change, isTakeover: true, at: 0 })
  for (let at = 1; at <= 60; at += 1) changes.add({ ...change, isTakeover: false, at })
  expect(changes).toMatchObject({ total: 61, takeovers: 1 })
  expect(changes.latest.map(({ at }) => at)).toEqual([...Array.from({ length: 50 }, (_, index) => 60 - index), 0])
})
