import { StorageType } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { startNats } from '../../../lab/servers/nats.ts'
import { signal } from '../../../test/support.ts'
import { checkNats } from './nats.ts'

test('a bucket in memory is a warning, one on disk is not', async () => {
  await using server = await startNats()
  await using connection = await connect({ servers: server.address })
  const kvm = new Kvm(connection)
  await kvm.create('disk')
  await kvm.create('memory', { storage: StorageType.Memory })
  const levels = async (bucket: string): Promise<Record<string, string>> =>
    Object.fromEntries(
      (await checkNats(`nats://${server.address}/${bucket}`, signal)).map(({ id, level }) => [id, level]),
    )
  const good = { tls: 'ok', version: 'ok', 'nats-storage': 'ok', 'nats-replicas': 'ok' }
  expect(await levels('disk')).toEqual(good)
  expect(await levels('memory')).toEqual({ ...good, 'nats-storage': 'warning' })
})
