import { parentPort, workerData } from 'node:worker_threads'
import { openStore } from '../../connect.ts'
import { connections } from '../../stores/sqlite/requests.ts'
import { coreEnvironment } from '../core.ts'
import { Charges } from './charges.ts'
import { Liveness } from './liveness.ts'
import type { Assignment, News, Order } from './messages.ts'
import { ThreadPulse } from './pulse.ts'

// What runs in the heartbeat's thread: a store of its own, and nothing that the main thread could hold up.
const { url, liveness, pulse } = workerData as Assignment
const tell = (news: News): void => parentPort?.postMessage(news)
connections.brief = true
const store = await openStore(url)
const environment = coreEnvironment()
const charges = new Charges(store, environment, new Liveness(liveness), new ThreadPulse(environment, pulse), tell)

const end = async (): Promise<void> => {
  charges.close()
  await store[Symbol.asyncDispose]()
  parentPort?.close()
}

parentPort?.on('message', (order: Order | 'end') => void (order === 'end' ? end() : charges.carryOut(order)))
tell({ kind: 'ready' })
