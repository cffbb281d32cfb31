// The dashboard in a Nest application, over Express: node examples/dashboard/nest.ts
import 'reflect-metadata'
import { once } from 'node:events'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { dashboard } from '../../src/dashboard/dashboard.ts' // in your project: 'holdfast/dashboard'
import { createLocks } from '../../src/index.ts' // 'holdfast'
import { memory } from '../../src/stores/memory/index.ts' // 'holdfast/memory'

const locks = createLocks(memory())
await using board = dashboard(locks, {
  authorize: () => 'operate', // in your service: decide by the user that your middleware found, in `node`
})

class AppModule {}
Module({})(AppModule) // Node cannot run decorators: with a compiler it is @Module({})

const app = await NestFactory.create(AppModule, { logger: false })
app.use('/locks', board.handler)

await locks.using('reports', async ({ signal }) => {
  await app.listen(0, '127.0.0.1')
  console.log(`${await app.getUrl()}/locks`)
  await once(signal, 'abort')
})
