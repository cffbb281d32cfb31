import { setTimeout as pause } from 'node:timers/promises'
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

/** `lines`: the connections that were opened. */
function open(replaced?: () => void): { readonly connections: Connections<Line>; readonly lines: readonly Line[] } {
  const lines: Line[] = []
  const connections = new Connections<Line>({
    open: async () => {
      const line = new Line()
      lines.push(line)
      return line
    },
    failure: error => new LeaseError('STORE_UNAVAILABLE', String(error)),
    judge: () => 'retire',
    ...(replaced && { replaced }),
  })
  return { connections, lines }
}

test('a connection that hangs is replaced although the two before it were given up by their answers', async () => {
  const { connections, lines } = open()
  for (const _ of [0, 1])
    await expect(connections.run(() => Promise.reject(new Error('READONLY')))).rejects.toThrow('READONLY')
  expect(lines.map(({ isClosed }) => isClosed)).toEqual([true, true])
  // An old server took the third one, and hangs.
  void connections.run(() => new Promise<never>(() => {}), { patience: 100 }).catch(() => {})
  await expect.poll(() => lines.length).toBe(4)
  expect(await connections.run(async line => lines.indexOf(line))).toBe(3)
  connections.close()
})

test('that another connection replaced one that was given up is told once it has answered', async () => {
  let told = 0
  const { connections, lines } = open(() => (told += 1))
  const refuse = async (line: Line): Promise<void> => connections.doubt(line, new Error('READONLY'))
  await connections.run(async () => {})
  for (let round = 0; round < 3; round++) await connections.run(refuse)
  expect(lines).toHaveLength(3)
  expect(told).toBe(0)
  for (let round = 0; round < 2; round++) await connections.run(async () => {})
  expect(lines).toHaveLength(4)
  expect(told).toBe(1)
  connections.close()
})

test('a connection that hangs after two others is replaced a second later, although no other request comes', async () => {
  const { connections, lines } = open()
  for (let hung = 1; hung <= 3; hung++) {
    void connections.run(() => new Promise<never>(() => {}), { patience: 100 }).catch(() => {})
    if (hung < 3) await expect.poll(() => lines.length).toBe(hung + 1)
  }
  await expect.poll(() => lines.length, { timeout: 3_500 }).toBe(4)
  connections.close()
})

test('connections that refuse all of their requests do not pile up', async () => {
  const { connections, lines } = open()
  for (let round = 0; round < 10; round++) {
    const refuse = async (line: Line): Promise<void> => connections.doubt(line, new Error('READONLY'))
    await Promise.all([1, 2, 3].map(() => connections.run(refuse)))
    expect(lines.filter(({ isClosed }) => !isClosed).length).toBeLessThan(2)
  }
  expect(lines).toHaveLength(10)
})

test('a server that accepts connections and answers nothing is tried again each second, and none of them is given up', async () => {
  const { connections, lines } = open()
  let answer = (): void => {}
  const slow = connections.run(() => new Promise<void>(resolve => (answer = resolve)), { patience: 100 })
  const began = performance.now()
  while (lines.length < 5 && performance.now() < began + 4_500) {
    void connections.run(() => new Promise<never>(() => {}), { patience: 100 }).catch(() => {})
    await pause(100)
  }
  // The first two are replaced at once, and the others a second later each.
  expect(lines.length).toBe(5)
  expect(performance.now() - began).toBeGreaterThan(2_000)
  expect(lines.filter(({ isClosed }) => isClosed)).toEqual([])
  answer()
  await slow
  connections.close()
  expect(lines.filter(({ isClosed }) => !isClosed)).toEqual([])
})
