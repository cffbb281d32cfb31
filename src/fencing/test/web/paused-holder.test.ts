import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startApache } from '../../../../lab/servers/apache.ts'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { connect } from '../../../index.ts'
import { httpObjects, objectFence } from '../../objects/index.ts'
import { Child } from './child.ts'
import { type Kind, writes } from './writes.ts'

/** A resource of the kind, and how it is read. */
const resources: Record<Kind, () => Promise<{ target: string; read: (how: 'fenced' | 'naive') => Promise<string> }>> = {
  async http() {
    const service = new Child(new URL('service.ts', import.meta.url), newFolder('service'))
    onTestFinished(() => service[Symbol.asyncDispose]())
    const target = `http://127.0.0.1:${await service.line()}/fenced/ledger`
    return { target, read: async () => (await fetch(target)).text() }
  },
  async objects() {
    const server = await startApache()
    onTestFinished(() => server.stop())
    const target = server.url('ledger')
    const fence = objectFence(httpObjects())
    return { target, read: async () => Buffer.from((await fence.get(target))?.body ?? []).toString() }
  },
  async files() {
    const target = join(newFolder('fenced'), 'ledger')
    return { target, read: () => readFile(target, 'utf8') }
  },
}

/** The first holder is paused past its ttl, the next one writes, and the first continues. */
async function story(kind: Kind, how: 'fenced' | 'naive'): Promise<{ answer: string; text: string }> {
  const { target, read } = await resources[kind]()
  const store = `sqlite:${join(newFolder('leases'), 'leases.db')}`
  await using locks = await connect(store)
  await using first = new Child(new URL('holder.ts', import.meta.url), store, kind, how, target)
  expect(await first.line()).toBe('about to write')
  await first.pause()

  await using next = await locks.acquire('ledger')
  await writes[kind][how](target, 'by the next', next)
  first.resume()
  first.tell('go')
  return { answer: await first.line(), text: await read(how) }
}

test.each(['http', 'objects', 'files'] as const)(
  'with %s a holder that was paused past its ttl is refused once the next has written',
  async kind => {
    const { answer, text } = await story(kind, 'fenced')
    expect(JSON.parse(answer)).toEqual({ code: 'STALE_TOKEN', older: true })
    expect(text).toBe('by the next')
  },
)

test.each(['http', 'objects', 'files'] as const)(
  'with %s and no fence the write of the next holder is lost',
  async kind => {
    const { answer, text } = await story(kind, 'naive')
    expect(answer).toBe('written')
    expect(text).toBe('by the first')
  },
)
