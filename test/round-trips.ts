import { Socket } from 'node:net'

/**
 * Counts the round trips on all connections that this process opens from now on. All data that are sent before the first
 * reply are one round trip. Returns a function that returns the count.
 *
 * The count is exact for sequential requests. Requests at the same time on two connections count twice.
 */
export function countRoundTrips(): () => number {
  let count = 0
  /** Is the connection waiting for a reply? */
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

/** All data of a client pass through these. */
interface Methods {
  connect(...args: unknown[]): unknown
  write(...args: unknown[]): unknown
  push(...args: unknown[]): unknown
}
