import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import { Connection } from '../../src/stores/zookeeper/connection.ts'
import { create, createContainer, remove } from '../../src/stores/zookeeper/protocol.ts'
import type { Peer, Place } from '../peer.ts'

/** It syncs to the disk, as it is installed. */
export const SYNCED = { properties: { 'zookeeper.forceSync': 'yes' } } as const

export const WORLD = { permissions: 31, scheme: 'world', id: 'anyone' }

/** A session in plain requests. */
export function openSession({ host, ports: [port = 0] }: Place): Promise<Connection> {
  const handshake = { timeout: 30_000, id: 0n, password: new Uint8Array(16), lastZxid: 0n }
  return Connection.open({ host, port }, { tls: undefined, auth: undefined }, handshake, 5_000)
}

/** One node for each name, which is made and deleted: no line, nobody is told of anything. */
export const peer: Peer = {
  label: 'floor: create and delete a node',
  over: 'zookeeper',
  can: ['pairs'],
  isFloor: true,
  serve: async () => (await startZooKeeper(SYNCED)).port,
  async open(place) {
    const connection = await openSession(place)
    await connection.send(createContainer('/floor', WORLD))
    return {
      async acquire(name) {
        const path = `/floor/${name}`
        await connection.send(create(path, '', WORLD, 'ephemeral'))
        return () => connection.send(remove(path))
      },
      close: async () => connection.end(new Error('over')),
    }
  },
}
