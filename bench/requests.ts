import { Socket } from 'node:net'

let count = 0

/** Commands that left this process for a server of Redis since `countRequests()`; a script is one. */
export const requests = (): number => count

/**
 * Counts what clients write, in the process itself: the server cannot tell a client's commands from those of a script,
 * MONITOR would cost it more than they do, and a proxy would delay them.
 */
export function countRequests(): void {
  const write = Socket.prototype.write as (...args: unknown[]) => boolean
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    const [chunk] = args
    if (typeof chunk === 'string') count += commandsIn(chunk)
    else if (chunk instanceof Uint8Array) count += commandsIn(Buffer.from(chunk).toString('latin1'))
    return write.apply(this, args)
  } as Socket['write']
}

/** Each command is an array of RESP, `*3\r\n$…`. */
function commandsIn(text: string): number {
  let found = 0
  for (let at = text.indexOf('*'); at >= 0; at = text.indexOf('\n*', at) + 1 || -1)
    if ((at === 0 || text[at - 1] === '\n') && /^\*\d+\r\n\$/.test(text.slice(at, at + 16))) found += 1
  return found
}
