import type { Socket } from 'node:net'

/** Calls `read` with each line that comes. That the connection ends, by whatever error, is no error of this process. */
export function onLines(socket: Socket, read: (line: string) => void): void {
  let rest = ''
  socket.on('error', () => {})
  socket.setEncoding('utf8').on('data', (piece: string) => {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) read(line)
  })
}
