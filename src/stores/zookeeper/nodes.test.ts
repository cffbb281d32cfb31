import { describe, expect, test } from 'vitest'
import { claimOf } from '../../../test/support.ts'
import { type Node, newNode, parseNode, Queue, replacing, tombstone } from './nodes.ts'

const a = 'aa'.repeat(16)
const b = 'bb'.repeat(16)
const c = 'cc'.repeat(16)

const nothing = { limit: 1, units: 1, token: undefined, roundTrip: 0 }

describe('the name of a node', () => {
  test.each([
    [`c${a}-0000000007`, { kind: 'c', slots: [0], sequence: 7 }],
    [`w${a}--2147483648`, { kind: 'w', slots: [], sequence: -2_147_483_648 }],
    [`h${a}-01234567-0000000007`, { kind: 'h', slots: [0], sequence: 7 }],
    [`h${a}-01234567-t1f-0000000007`, { kind: 'h', slots: [0], token: 31n, sequence: 7 }],
    [`w${a}-r480-0000000007`, { kind: 'w', slots: [], roundTrip: 480, sequence: 7 }],
    [
      `h${a}-01234567-t1f-r480--2147483648`,
      { kind: 'h', slots: [0], token: 31n, roundTrip: 480, sequence: -2_147_483_648 },
    ],
    [`w${a}-l5-u3-r4-0000000007`, { kind: 'w', limit: 5, units: 3, slots: [], roundTrip: 4, sequence: 7 }],
    [`t${a}-l2147483647-r4-0000000007`, { kind: 't', limit: 2_147_483_647, slots: [], roundTrip: 4, sequence: 7 }],
    [
      `h${a}-01234567-t1f-l5-s0.2.4-r4-0000000007`,
      { kind: 'h', limit: 5, units: 3, slots: [0, 2, 4], token: 31n, roundTrip: 4, sequence: 7 },
    ],
    [tombstone(a), { kind: 'x', slots: [], sequence: 0 }],
  ])('%s says all that decides', (name, expected) => {
    expect(parseNode(name)).toEqual({ ...nothing, name, id: a, ...expected })
  })

  test.each(['', 'lock-0000000001', `h${a}`, `x${a}-0000000001`, `q${a}-0000000001`, `h${a}-12`, 'h-0000000001'])(
    '%o is none of ours',
    name => expect(parseNode(name)).toBeUndefined(),
  )

  test('of a node that replaces another keeps its position and its terms, and is unique', () => {
    for (const sequence of [0, 7, 2_147_483_647, -1, -2_147_483_648])
      for (const limit of [1, 5]) {
        const claim = { ...claimOf('name'), id: a, limit, units: limit > 1 ? 2 : 1 }
        const number = sequence < 0 ? `-${String(-sequence).padStart(9, '0')}` : String(sequence).padStart(10, '0')
        const from = nodeOf(`${newNode('w', claim, 480)}${number}`)
        const slots = limit > 1 ? [1, 4] : [0]
        const [one, two] = [0, 1].map(() => replacing(from, { kind: 'h', token: 99n, slots })) as [string, string]
        expect(one).not.toBe(two)
        expect(parseNode(one)).toEqual({ ...from, name: one, kind: 'h', token: 99n, slots })
        const waits = replacing(from, { kind: 'w' })
        expect(parseNode(waits)).toEqual({ ...from, name: waits })
      }
  })

  test.each([
    [`w${a}-0000000007`, `h${a}-0000000007`],
    [`w${a}-r480-0000000007`, `h${a}-r480-0000000007`],
    [`w${a}-01234567--2147483648`, `h${a}-01234567--2147483648`],
  ])('of a waiter, %s, that begins to hold alone is known in advance, and no node has had it', (name, holder) => {
    const waiter = nodeOf(name)
    const holding = { kind: 'h', token: undefined, slots: [0] } as const
    expect(replacing(waiter, holding)).toBe(holder)
    const held = nodeOf(holder)
    expect(held).toEqual({ ...waiter, name: holder, kind: 'h', slots: [0] })
    for (const by of [holding, { kind: 'w' }] as const) expect([name, holder]).not.toContain(replacing(held, by))
  })
})

describe('a queue', () => {
  test("is in the order of the server's numbers, also after its counter overflowed", () => {
    const queue = new Queue([`w${b}--2147483648`, `c${a}-2147483647`, `w${c}--2147483647`])
    expect(queue.nodes.map(({ id }) => id)).toEqual([a, b, c])
    expect(queue.holders.map(({ id }) => id)).toEqual([a])
    expect(queue.waiters.map(({ id }) => id)).toEqual([b, c])
  })

  test('has all nodes that hold, by their slots, and the first of all if that may hold alone', () => {
    const shared = [`h${a}-l3-s1-0000000001`, `w${b}-0000000002`, `h${c}-l3-s0-0000000003`]
    expect(new Queue(shared).holders.map(({ id }) => id)).toEqual([c, a])
    expect(new Queue([`w${a}-0000000001`, `c${b}-0000000002`]).holders).toEqual([])
    expect(new Queue([`t${a}-0000000001`, `c${b}-0000000002`]).holders).toEqual([])
  })

  test('knows the withdrawn claims, and ignores foreign nodes', () => {
    const queue = new Queue([`w${b}-0000000002`, tombstone(c), `c${a}-0000000001`, 'something else'])
    expect([queue.isWithdrawn(c), queue.isWithdrawn(a)]).toEqual([true, false])
    expect(queue.nodes).toHaveLength(2)
  })
})

function nodeOf(name: string): Node {
  return parseNode(name) ?? expect.fail(`${name} is not a node of a claim`)
}
