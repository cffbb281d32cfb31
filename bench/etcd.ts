import { startEtcd } from '../src/lab/servers/etcd.ts'

/** For `Peer.serve`: an etcd that ends with this process. */
export async function serveEtcd(): Promise<number> {
  return (await startEtcd()).port
}
