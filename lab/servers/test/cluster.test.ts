import { Cluster } from 'ioredis'
import { expect, test } from 'vitest'
import { startCluster } from '../cluster.ts'

test('a cluster serves every key, each on the node that has it, also after a restart', {
  timeout: 30_000,
}, async () => {
  await using cluster = await startCluster()
  const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
  const nodes = new Set()
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
    expect(await client.set(name, 'value')).toBe('OK')
    const node = await cluster.nodeOf(name)
    expect(await node.call('GET', name)).toBe('value')
    nodes.add(node)
  }
  expect(nodes.size).toBe(3)
  client.disconnect()

  const node = await cluster.nodeOf('a')
  await node.restart()
  await cluster.agreed()
  expect(await node.call('SET', 'a', 'again')).toBe('OK')
})
