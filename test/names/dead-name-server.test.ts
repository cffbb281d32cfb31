import { join } from 'node:path'
import { expect } from 'vitest'
import { runInNamespace, testInNamespace } from '../namespace.ts'

testInNamespace('a name server that is gone costs one pending look-up of a host, whatever the client', async () => {
  const printed = await runInNamespace(join(import.meta.dirname, 'dead-name-server.ts'))
  expect(JSON.parse(printed)).toEqual({ most: 1, isOneLeft: true })
})

testInNamespace('a first address of a host that accepts connections and hangs does not end the service', async () => {
  const hosts = '127.0.0.3 several.test\n127.0.0.1 several.test\n'
  const printed = await runInNamespace(join(import.meta.dirname, 'silent-address.ts'), hosts)
  expect(printed).toBe('ioredis,iovalkey,node-redis')
})
