import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startApache } from '../../../../lab/servers/apache.ts'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { fileFence } from '../../files/index.ts'
import { fenceHeaders, throwIfStale } from '../../http/index.ts'
import type { Holder, Mark } from '../../mark.ts'
import { httpObjects, objectFence } from '../../objects/index.ts'
import { parse, sleep, testCrowds, write } from '../crowd.ts'
import { Child } from './child.ts'

const holderOf = ({ token }: Mark): Holder => ({ name: 'any', token })
const lines = (text: string): Mark[] => text.split('\n').filter(Boolean).map(parse)
/** One after the other for each key, as a holder that reads and then writes has to. */
function inOrder(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const ends = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const end = (ends.get(key) ?? Promise.resolve()).catch(() => {}).then(work)
    ends.set(key, end)
    return end
  }
}

/** As who reads, and then writes all of it with a line more. */
const longer = (text: string, mark: Mark): string => `${text}${write(mark)}\n`

testCrowds({
  async http() {
    const folder = newFolder('service')
    let service = new Child(new URL('service.ts', import.meta.url), folder)
    const port = await service.line()
    const post = async (path: string, mark: Mark, pause: number, headers = {}): Promise<void> => {
      const url = `http://127.0.0.1:${port}/${path}?pause=${pause}`
      const response = await fetch(url, { method: 'POST', headers, body: longer('', mark) })
      await throwIfStale(response)
      if (!response.ok) throw new Error(`answered ${response.status}`)
    }
    return {
      pace: 0.2,
      append: (resource, mark, pause) =>
        post(`fenced/${resource}`, mark, pause, fenceHeaders(holderOf(mark), { resource, epoch: mark.epoch })),
      naive: (resource, mark, pause) => post(`naive/${resource}`, mark, pause),
      read: async resource => lines(await (await fetch(`http://127.0.0.1:${port}/fenced/${resource}`)).text()),
      async restart() {
        await service[Symbol.asyncDispose]()
        service = new Child(new URL('service.ts', import.meta.url), folder, port)
        await service.line()
      },
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    }
  },
  async objects() {
    const server = await startApache()
    const objects = httpObjects()
    const next = inOrder()
    const textOf = async (resource: string): Promise<string> => {
      const object = await objectFence(objects).get(server.url(resource))
      return Buffer.from(object?.body ?? []).toString()
    }
    return {
      pace: 2,
      append: (resource, mark, pause) =>
        next(resource + write(mark), async () => {
          const fence = objectFence(objects, { epoch: mark.epoch, attempts: 100 })
          const url = server.url(resource)
          await fence.touch(holderOf(mark), url)
          const text = await textOf(resource)
          await sleep(pause)
          await fence.put(holderOf(mark), url, longer(text, mark))
        }),
      async naive(resource, mark, pause) {
        const text = await textOf(resource)
        await sleep(pause)
        const response = await fetch(server.url(resource), { method: 'PUT', body: longer(text, mark) })
        await response.arrayBuffer()
      },
      read: async resource => lines(await textOf(resource)),
      async restart() {
        await server.kill()
        await server.start()
      },
      async [Symbol.asyncDispose]() {
        await server.stop()
      },
    }
  },
  async files() {
    const folder = newFolder('crowd')
    const next = inOrder()
    const textOf = (resource: string): Promise<string> => readFile(join(folder, resource), 'utf8').catch(() => '')
    return {
      pace: 2,
      append: (resource, mark, pause) =>
        next(resource + write(mark), async () => {
          const options = { epoch: mark.epoch, wait: 30_000 }
          const path = join(folder, resource)
          await fileFence(options).touch(holderOf(mark), path)
          const text = await textOf(resource)
          await sleep(pause)
          await fileFence(options).write(holderOf(mark), path, longer(text, mark))
        }),
      async naive(resource, mark, pause) {
        const text = await textOf(resource)
        await sleep(pause)
        await writeFile(join(folder, resource), longer(text, mark))
      },
      read: async resource => lines(await textOf(resource)),
      async [Symbol.asyncDispose]() {},
    }
  },
})
