// The dashboard in an Express application: node examples/dashboard/express.ts
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { dashboard } from '../../src/dashboard/dashboard.ts' // in your project: 'holdfast/dashboard'
import { createLocks } from '../../src/index.ts' // 'holdfast'
import { memory } from '../../src/stores/memory/index.ts' // 'holdfast/memory'

const locks = createLocks(memory())
await using board = dashboard(locks, {
  authorize: () => 'operate', // in your service: decide by the user that your middleware found, in `node`
})

const app = express()
app.use('/locks', board.handler)

await locks.using('reports', async ({ signal }) => {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/locks`)
  await once(signal, 'abort')
})
