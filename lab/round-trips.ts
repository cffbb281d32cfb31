import { Socket } from 'node:net'

/**
 * From now on counts how often this process waits for an answer, on all connections that it opens itself: whatever is
 * sent before the first bytes come back is one round trip. Answers how many there were so far.
 *
 * Exact while one thing happens at a time. What goes out at the same time on two connections is two.
 */
export function countRoundTrips(): () => number {
  let count = 0
  /** Whether each waits for an answer. */
  const opened = new WeakMap<Socket, boolean>()
  const { connect, write, push } = Socket.prototype as Methods
  Object.assign(Socket.prototype, {
    connect(this: Socket, ...args: unknown[]): unknown {
      opened.set(this, false)
      return connect.apply(this, args)
    },
    write(this: Socket, ...args: unknown[]): unknown {
      if (opened.has(this)) opened.set(this, true)
      return write.apply(this, args)
    },
    push(this: Socket, ...args: unknown[]): unknown {
      if (args[0] && opened.get(this)) {
        opened.set(this, false)
        count += 1
      }
      return push.apply(this, args)
    },
  } satisfies Methods)
  return () => count
}

/** Everything that a client sends or is sent passes these. */
interface Methods {
  connect(...args: unknown[]): unknown
  write(...args: unknown[]): unknown
  push(...args: unknown[]): unknown
}
