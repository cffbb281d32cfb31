import { describe, expect, test } from 'vitest'
import { newNode, nodeInPlace, parseNode, Queue, tombstone } from './nodes.ts'

const a = 'aa'.repeat(16)
const b = 'bb'.repeat(16)
const c = 'cc'.repeat(16)

describe('the name of a node', () => {
  test.each([
    [`h${a}-0000000007`, { kind: 'h', id: a, token: undefined, roundTrip: 0, place: 7 }],
    [`w${a}--2147483648`, { kind: 'w', id: a, token: undefined, roundTrip: 0, place: -2_147_483_648 }],
    [`h${a}-01234567-0000000007`, { kind: 'h', id: a, token: undefined, roundTrip: 0, place: 7 }],
    [`h${a}-01234567-t1f-0000000007`, { kind: 'h', id: a, token: 31n, roundTrip: 0, place: 7 }],
    [`w${a}-r480-0000000007`, { kind: 'w', id: a, token: undefined, roundTrip: 480, place: 7 }],
    [`h${a}-01234567-t1f-r480--2147483648`, { kind: 'h', id: a, token: 31n, roundTrip: 480, place: -2_147_483_648 }],
    [`x${a}`, { kind: 'x', id: a, token: undefined, roundTrip: 0, place: 0 }],
  ])('%s says all that decides', (name, expected) => {
    expect(parseNode(name)).toEqual({ name, ...expected })
  })

  test.each(['', 'lock-0000000001', `h${a}`, `x${a}-0000000001`, `q${a}-0000000001`, `h${a}-12`, 'h-0000000001'])(
    '%o is none of ours',
    name => expect(parseNode(name)).toBeUndefined(),
  )

  test('of a node that replaces another keeps its position, and is unique', () => {
    for (const place of [0, 7, 2_147_483_647, -1, -2_147_483_648]) {
      const from = { name: newNode('w', a, 480), kind: 'w', id: a, token: undefined, roundTrip: 480, place } as const
      const [one, two] = [nodeInPlace('h', from, 99n), nodeInPlace('h', from, 99n)]
      expect(one).not.toBe(two)
      expect(parseNode(one)).toEqual({ name: one, kind: 'h', id: a, token: 99n, roundTrip: 480, place })
    }
  })

  test.each([
    [`w${a}-0000000007`, `h${a}-0000000007`],
    [`w${a}-r480-0000000007`, `h${a}-r480-0000000007`],
    [`w${a}-01234567--2147483648`, `h${a}-01234567--2147483648`],
  ])('of a waiter, %s, that begins to hold is known in advance, and no node has had it', (name, holder) => {
    const waiter = parseNode(name)
    if (!waiter) throw new Error(`${name} is not a node of a claim`)
    expect(nodeInPlace('h', waiter, undefined)).toBe(holder)
    const held = parseNode(holder)
    if (!held) throw new Error(`${holder} is not a node of a claim`)
    expect(held).toEqual({ ...waiter, name: holder, kind: 'h' })
    for (const kind of ['h', 'w'] as const) expect([name, holder]).not.toContain(nodeInPlace(kind, held, undefined))
  })
})

describe('a queue', () => {
  test("is in the order of the server's numbers, also after its counter overflowed", () => {
    const names = [`w${b}--2147483648`, `h${a}-2147483647`, `w${c}--2147483647`]
    const line = new Queue(names, 0n)
    expect(line.nodes.map(({ id }) => id)).toEqual([a, b, c])
    expect(line.holder?.id).toBe(a)
  })

  test('has a holder only if its first node holds', () => {
    expect(new Queue([`w${a}-0000000001`, `h${b}-0000000002`], 0n).holder).toBeUndefined()
  })

  test('knows the nodes ahead of a claim and the withdrawn claims, and ignores foreign nodes', () => {
    const line = new Queue([`w${b}-0000000002`, tombstone(c), `h${a}-0000000001`, 'something else'], 0n)
    const [mine] = line.of(b)
    expect(mine && line.ahead(mine).map(({ id }) => id)).toEqual([a])
    expect([line.isWithdrawn(c), line.isWithdrawn(a)]).toEqual([true, false])
    expect(line.nodes).toHaveLength(2)
  })
})
