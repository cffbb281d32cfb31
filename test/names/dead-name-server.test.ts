import { join } from 'node:path'
import { expect } from 'vitest'
import { runInNamespace, testInNamespace } from '../namespace.ts'

testInNamespace('a name server that is gone costs one pending look-up of a host, whatever the client', async () => {
  const printed = await runInNamespace(join(import.meta.dirname, 'dead-name-server.ts'))
  expect(JSON.parse(printed)).toEqual({ most: 1, isOneLeft: true })
})
