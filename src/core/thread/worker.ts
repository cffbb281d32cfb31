import { parentPort, workerData } from 'node:worker_threads'
import type { Store } from '../../contract/store.ts'
import { coreEnvironment } from '../core.ts'
import { workerStatistics } from './disruptions.ts'
import { Liveness } from './liveness.ts'
import { ManagedLeases } from './managed-leases.ts'
import type { Command, Notification, WorkerInput } from './messages.ts'

/** Runs the heartbeat's worker thread, over a store of its own. The main thread cannot delay it. */
export async function runWorker(openStore: (url: string) => Promise<Store>): Promise<void> {
  const { url, liveness, statistics: shared } = workerData as WorkerInput
  const notify = (notification: Notification): void => parentPort?.postMessage(notification)
  const store = await openStore(url)
  const environment = coreEnvironment()
  const statistics = workerStatistics(environment, shared)
  const leases = new ManagedLeases(store, environment, new Liveness(liveness), statistics, notify)
  const end = async (): Promise<void> => {
    leases.close()
    await store[Symbol.asyncDispose]()
    parentPort?.close()
  }
  parentPort?.on('message', (command: Command | 'end') => void (command === 'end' ? end() : leases.execute(command)))
  notify({ kind: 'ready' })
}
