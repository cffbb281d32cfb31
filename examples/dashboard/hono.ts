// The dashboard in a Hono application: node examples/dashboard/hono.ts
import { once } from 'node:events'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { dashboard } from '../../src/dashboard/dashboard.ts' // in your project: 'holdfast/dashboard'
import { createLocks } from '../../src/index.ts' // 'holdfast'
import { memory } from '../../src/stores/memory/index.ts' // 'holdfast/memory'

const locks = createLocks(memory())
await using board = dashboard(locks, {
  authorize: () => 'operate', // in your service: decide by the session, such as a signed cookie of `request`
})

const app = new Hono()
app.all('/locks', context => board.fetch(context.req.raw))

await locks.using('reports', async ({ signal }) => {
  const port = await new Promise<number>(resolve => {
    serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, address => resolve(address.port))
  })
  console.log(`http://127.0.0.1:${port}/locks`)
  await once(signal, 'abort')
})
