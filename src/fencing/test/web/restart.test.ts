import { expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { Child } from './child.ts'
import { writes } from './writes.ts'

const write = writes.http.fenced
const lease = (token: bigint): { name: string; token: bigint } => ({ name: 'ledger', token })

test('a service that was killed and restarted refuses the same holders if its marks survive it', async () => {
  const folder = newFolder('service')
  await using before = new Child(new URL('service.ts', import.meta.url), folder)
  const port = await before.line()
  const target = `http://127.0.0.1:${port}/fenced/ledger`
  await write(target, 'seven', lease(7n))
  await before[Symbol.asyncDispose]()

  await using after = new Child(new URL('service.ts', import.meta.url), folder, port)
  await after.line()
  await expect(write(target, 'six', lease(6n))).rejects.toMatchObject({ code: 'STALE_TOKEN', token: 6n, highest: 7n })
  await write(target, 'eight', lease(8n))
  expect(await (await fetch(target)).text()).toBe('eight')
})
