import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Malformed, Reader, Writer } from './jute.ts'
import * as protocol from './protocol.ts'

const acl = { permissions: 31, scheme: 'world', id: 'anyone' }
const steps = [
  protocol.checkStep('/a'),
  protocol.createStep('/a', '', acl, 'ephemeral'),
  protocol.deleteStep('/a'),
  protocol.setDataStep('/a', ''),
]
const readers: Record<string, (from: Reader) => unknown> = {
  handshake: protocol.readHandshake,
  create: protocol.create('/a', '', acl, 'ephemeral').read,
  setData: protocol.setData('/a', '', 0).read,
  exists: protocol.exists('/a').read,
  getData: protocol.getData('/a').read,
  getAcl: protocol.getAcl('/a').read,
  getChildren: protocol.getChildren('/a').read,
  multi: protocol.multi(steps).read,
  readAll: protocol.readAll(['/a', '/b']).read,
}

const stat = (to: Writer): Writer =>
  to.long(1n).long(2n).long(0n).long(0n).int(3).int(0).int(4).long(7n).int(0).int(0).long(1n)
/** An answer to each request, all in one row of bytes: whatever is spoiled, some of it is nearly right. */
const good = stat(stat(new Writer().string('/a')).int(1).int(31).string('digest').string('app:x'))
for (const type of [13, 1, 2]) good.int(type).bool(false).int(0)
const bytes = good.string('/a').int(5).bool(false).int(0).frame().subarray(4)

test('an answer of any bytes is either valid or malformed, and never read beyond its end', () => {
  const spoiled = fc
    .tuple(fc.nat(bytes.length), fc.nat(bytes.length), fc.uint8Array({ maxLength: 12 }))
    .map(([start, at, piece]) => Buffer.concat([bytes.subarray(start, start + at), piece, bytes.subarray(start + at)]))
  const any = fc.oneof(
    spoiled,
    fc.uint8Array({ maxLength: 200 }).map(each => Buffer.from(each)),
  )
  fc.assert(
    fc.property(any, fc.constantFrom(...Object.keys(readers)), (answer, kind) => {
      const from = new Reader(answer)
      try {
        const read = readers[kind]?.(from)
        if (kind === 'multi') expect(read).toHaveLength(steps.length)
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed)
      }
      expect(from.remaining).toBeGreaterThanOrEqual(0)
    }),
    { numRuns: 5_000, seed: 20_261_122 },
  )
})

test('permissions are read as the server wrote them', () => {
  const written = stat(
    new Writer().int(2).int(31).string('digest').string('app:x').int(1).string('world').string('anyone'),
  )
  expect(protocol.getAcl('/a').read(new Reader(written.frame().subarray(4)))).toMatchObject({
    acl: [
      { permissions: 31, scheme: 'digest', id: 'app:x' },
      { permissions: 1, scheme: 'world', id: 'anyone' },
    ],
    stat: { czxid: 1n, mzxid: 2n, version: 3, aclVersion: 4, owner: 7n },
  })
})
