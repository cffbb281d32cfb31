import { parentPort, workerData } from 'node:worker_threads'
import { systemEnvironment } from '../core.ts'
import { openStore } from '../url.ts'
import { Charges } from './charges.ts'
import { Liveness } from './liveness.ts'
import type { Assignment, News, Order } from './messages.ts'

// What runs in the heartbeat's thread: a store of its own, and nothing that the main thread could hold up.
const { url, liveness } = workerData as Assignment
const tell = (news: News): void => parentPort?.postMessage(news)
const store = await openStore(url)
const charges = new Charges(store, systemEnvironment(), new Liveness(liveness), tell)

const end = async (): Promise<void> => {
  charges.close()
  await store[Symbol.asyncDispose]()
  parentPort?.close()
}

parentPort?.on('message', (order: Order | 'end') => void (order === 'end' ? end() : charges.carryOut(order)))
tell({ kind: 'ready' })
