import { expect, test } from 'vitest'
import { SharedTerm } from './term.ts'
import type { Timestamp } from './timestamp.ts'

const GONE = Number.NEGATIVE_INFINITY

/** Two threads' views of one term, on clocks that the test sets: `pass` ms by the monotonic one, and by the wall's. */
function shared() {
  let now: Timestamp = { monotonic: 7_000_000_000n, wall: Date.UTC(2026, 0, 1) }
  const pass = (monotonic: number, wall = monotonic): void => {
    now = { monotonic: now.monotonic + BigInt(monotonic * 1e6), wall: now.wall + wall }
  }
  const writer = new SharedTerm(undefined, () => now)
  const reader = new SharedTerm(writer.memory, () => now)
  return { writer, reader, pass }
}

test('a written record is reported once, until the next write', () => {
  const { writer, reader } = shared()
  expect(reader.read()).toBeUndefined()
  writer.write(() => 1_000.25)
  expect([reader.read(), reader.read()]).toEqual([1_000.25, undefined])
  writer.write(() => 500)
  writer.write(() => 400)
  expect([reader.read(), reader.read()]).toEqual([400, undefined])
})

test('the time since the write reduces the remaining time', () => {
  const { writer, reader, pass } = shared()
  writer.write(() => 1_000)
  pass(300)
  expect(reader.read()).toBe(700)
})

test('the sleep of the machine and a forward step of its wall clock count as elapsed, a step back does not', () => {
  const { writer, reader, pass } = shared()
  writer.write(() => 1_000)
  pass(10, 5_010)
  expect(reader.read()).toBe(-4_010)
  writer.write(() => 1_000)
  pass(10, -60_000)
  expect(reader.read()).toBe(990)
})

test('time that passes during the write counts as elapsed', () => {
  const { writer, reader, pass } = shared()
  writer.write(() => {
    pass(50) // the thread was not scheduled just then
    return 950
  })
  expect(reader.read()).toBe(900)
})

test('a lease that is gone stays gone, whatever is written later', () => {
  const { writer, reader } = shared()
  writer.write(() => 1_000)
  writer.end()
  writer.write(() => 1_000)
  expect([reader.read(), reader.read()]).toEqual([GONE, undefined])
})

test('a write of a thread that ended before finishing it changes nothing', () => {
  const { writer, reader } = shared()
  writer.write(() => 1_000)
  expect(() =>
    writer.write(() => {
      throw new Error('terminated')
    }),
  ).toThrow('terminated')
  expect(reader.read()).toBe(1_000)
})

test('a stop reads the last value once, and no later one is written', () => {
  const { writer, reader, pass } = shared()
  expect(writer.write(() => 1_000)).toBe(true)
  pass(300)
  expect(reader.stop()).toBe(700)
  expect(writer.write(() => 2_000)).toBe(false)
  expect(reader.stop()).toBe(GONE)
})

test('a stop reads nothing if the last value was read before, and the loss if the lease is gone', () => {
  const { writer, reader } = shared()
  writer.write(() => 1_000)
  reader.read()
  expect(reader.stop()).toBeUndefined()
  const other = shared()
  other.writer.write(() => 1_000)
  other.writer.end()
  expect(other.reader.stop()).toBe(GONE)
})

test('a stop during a write reads the value before, and the writer learns that its own was not written', () => {
  const { writer, reader } = shared()
  writer.write(() => 1_000)
  let last: number | undefined
  const isWritten = writer.write(() => {
    last = reader.stop()
    return 500
  })
  expect({ last, isWritten }).toEqual({ last: 1_000, isWritten: false })
})
