import { startApache } from '../../lab/servers/apache.ts'
import { Build } from '../holdfast.ts'
import { HOLDER, keepsNoLeases, type Peer } from '../peer.ts'

const BODY = 'a line'

export const peer: Peer = {
  ...keepsNoLeases,
  label: 'object, in Apache by WebDAV',
  over: 'objects',
  serve: async () => (await startApache()).port,
  async openWriter({ host, ports: [port] }) {
    const { httpObjects, objectFence } = await new Build().fencingObjects()
    const fence = objectFence(httpObjects())
    const put = async (url: string): Promise<void> => {
      const response = await fetch(url, { method: 'PUT', body: BODY })
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${response.status} of ${url}`)
    }
    // Writers of one object would disturb each other: that is not what is measured here.
    const objects = new Free(count => `http://${host}:${port}/object-${count}`)
    return {
      plain: () => objects.use(put),
      fenced: () => objects.use(url => fence.put(HOLDER, `${url}-fenced`, BODY)),
      async close() {},
    }
  },
}

/** Names of which each is used by one at a time. */
export class Free {
  readonly #make: (count: number) => string
  readonly #free: string[] = []
  #made = 0

  constructor(make: (count: number) => string) {
    this.#make = make
  }

  async use(work: (name: string) => Promise<void>): Promise<void> {
    const name = this.#free.pop() ?? this.#make(this.#made++)
    await work(name)
    this.#free.push(name)
  }
}
