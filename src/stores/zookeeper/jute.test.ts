import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Frames, Malformed, Reader, Writer } from './jute.ts'

const LONGEST = 1_000

describe('a record', () => {
  test('is read as it was written', () => {
    const values = fc.tuple(
      fc.integer(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.boolean(),
      fc.string(),
    )
    fc.assert(
      fc.property(values, fc.uint8Array(), ([int, long, bool, text], bytes) => {
        const frame = new Writer(1).int(int).long(long).bool(bool).string(text).buffer(bytes).frame()
        const from = new Reader(frame.subarray(4))
        expect([from.int(), from.long(), from.bool(), from.string(), [...from.buffer()]]).toEqual([
          int,
          long,
          bool,
          Buffer.from(text).toString(),
          [...bytes],
        ])
        expect(from.remaining).toBe(0)
      }),
    )
  })

  test('that is truncated anywhere is malformed, and never read as another', () => {
    const whole = new Writer().string('abc').long(5n).int(1).string('x').frame().subarray(4)
    for (let length = 0; length < whole.length; length++) {
      const from = new Reader(whole.subarray(0, length))
      expect(() => [from.string(), from.long(), from.strings()]).toThrow(Malformed)
    }
  })

  test('of any bytes is either valid or malformed, and never read beyond its end', () => {
    const reads = fc.array(fc.constantFrom('int', 'long', 'bool', 'buffer', 'string', 'strings'), { maxLength: 10 })
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), reads, (bytes, kinds) => {
        const from = new Reader(Buffer.from(bytes))
        try {
          for (const kind of kinds) from[kind as 'int']()
        } catch (error) {
          expect(error).toBeInstanceOf(Malformed)
        }
        expect(from.remaining).toBeGreaterThanOrEqual(0)
      }),
    )
  })

  test.each([-2, 2_000_000_000])('with a list of %i makes nothing before it is malformed', length => {
    expect(() => new Reader(new Writer().int(length).frame().subarray(4)).strings()).toThrow(Malformed)
  })
})

describe('frames', () => {
  test('are the same however the stream is split', () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 10 })
    fc.assert(
      fc.property(pieces, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (contents, cuts) => {
        const stream = Buffer.concat(contents.map(content => frameOf(content)))
        const frames = new Frames(LONGEST)
        const found: number[][] = []
        for (let start = 0, turn = 0; start < stream.length; turn++) {
          const end = start + (cuts[turn % cuts.length] ?? 1)
          for (const frame of frames.add(stream.subarray(start, end))) found.push([...frame])
          start = end
        }
        expect(found).toEqual(contents.map(content => [...content]))
      }),
    )
  })

  test.each([LONGEST + 1, -1, 0x7fff_ffff, -0x8000_0000])('of a length of %i are malformed at once', length => {
    const frames = new Frames(LONGEST)
    const head = Buffer.alloc(4)
    head.writeInt32BE(length)
    expect(() => [...frames.add(head)]).toThrow(Malformed)
  })
})

function frameOf(content: Uint8Array): Buffer {
  const head = Buffer.alloc(4)
  head.writeInt32BE(content.length)
  return Buffer.concat([head, content])
}
