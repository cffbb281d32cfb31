import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { Network } from './network-faults.ts'
import { seeded } from './random.ts'

test('a fault that only delays a client excuses no loss of a lease that ends with its connection', async () => {
  const server = createServer(socket => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await using network = await Network.start({
    clients: 1,
    endpoints: [{ host: '127.0.0.1', port }],
    endsWithConnection: true,
    ttl: 100,
    choose: (_, [client]) => client as never,
  })
  const ends: string[] = []
  for (const [what, inject] of Object.entries(network.faults))
    await inject({
      random: seeded(1),
      length: 10,
      wait: async () => {},
      report: (_, effects) => effects?.forgets && ends.push(what),
    })
  server.close()
  expect(ends).toEqual(['cut', 'cut-requests', 'cut-replies', 'late', 'reset'])
})
