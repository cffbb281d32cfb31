import { expect, test } from 'vitest'
import { LeaseError } from '../../contract/errors.ts'
import { Connections } from './connections.ts'

class Line {
  isClosed = false
  onEnd(): void {}
  isOpen(): boolean {
    return !this.isClosed
  }
  close(): void {
    this.isClosed = true
  }
}

test('a connection that hangs is replaced although the two before it were given up by their answers', async () => {
  const lines: Line[] = []
  const connections = new Connections<Line>({
    open: async () => {
      const line = new Line()
      lines.push(line)
      return line
    },
    failure: error => new LeaseError('STORE_UNAVAILABLE', String(error)),
    judge: () => 'retire',
  })
  for (const _ of [0, 1])
    await expect(connections.run(() => Promise.reject(new Error('READONLY')))).rejects.toThrow('READONLY')
  expect(lines.map(({ isClosed }) => isClosed)).toEqual([true, true])
  // An old server took the third one, and hangs.
  void connections.run(() => new Promise<never>(() => {}), { patience: 100 }).catch(() => {})
  await expect.poll(() => lines.length).toBe(4)
  expect(await connections.run(async line => lines.indexOf(line))).toBe(3)
  connections.close()
})
