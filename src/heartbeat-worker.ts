import { openStore } from './connect.ts'
import { runWorker } from './core/thread/worker.ts'
import { connections } from './stores/sqlite/requests.ts'

// The module of the heartbeat's worker thread. It keeps an SQLite file open only while it renews.
connections.brief = true
await runWorker(openStore)
