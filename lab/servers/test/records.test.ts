import { expect, test } from 'vitest'
import { startAzurite } from '../azurite.ts'
import { startDynamoDb } from '../dynamodb.ts'
import { startNats, startNatsCluster } from '../nats.ts'

test.each([
  { name: 'DynamoDB Local', start: startDynamoDb },
  { name: 'Azurite', start: startAzurite },
  { name: 'NATS', start: startNats },
])('$name serves again after it was killed', async ({ start }) => {
  await using server = await start()
  await server.kill()
  expect(server.isRunning).toBe(false)
  await server.start()
  expect(server.isRunning).toBe(true)
})

test('three servers of NATS choose another leader when theirs is killed', async () => {
  await using cluster = await startNatsCluster()
  const leader = await cluster.leader()
  await leader.kill()
  expect(await cluster.leader()).not.toBe(leader)
})
