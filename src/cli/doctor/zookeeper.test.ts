import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { versionOf } from './zookeeper.ts'

test('a server that answers without an end is not read to it', async () => {
  let sent = 0
  const server = createServer(socket => {
    const part = 'x'.repeat(65_536)
    const more = (): void => {
      while (!socket.destroyed && socket.write(part)) sent += part.length
    }
    socket.on('drain', more).on('error', () => {})
    more()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(await versionOf({ host: '127.0.0.1', port }, { tls: undefined, auth: undefined })).toBeUndefined()
  expect(sent).toBeLessThan(50_000_000)
})
