// The dashboard in a Fastify application: node examples/dashboard/fastify.ts
import { once } from 'node:events'
import fastify from 'fastify'
import { dashboard } from '../../src/dashboard/dashboard.ts' // in your project: 'holdfast/dashboard'
import { createLocks } from '../../src/index.ts' // 'holdfast'
import { memory } from '../../src/stores/memory/index.ts' // 'holdfast/memory'

const locks = createLocks(memory())
await using board = dashboard(locks, {
  authorize: () => 'operate', // in your service: decide by the user that your hooks found, in `node`
})

const app = fastify()
app.all('/locks', (request, reply) => {
  reply.hijack()
  board.handler(request.raw, reply.raw)
})

await locks.using('reports', async ({ signal }) => {
  console.log(`${await app.listen({ port: 0, host: '127.0.0.1' })}/locks`)
  await once(signal, 'abort')
})
