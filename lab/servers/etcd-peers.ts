import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Port, reservePort } from './port.ts'

interface Link {
  /** The id of the member that connected, in hexadecimal; known from its first request. */
  from: string
  readonly to: number
  readonly ends: readonly [Socket, Socket]
}

const HOST = '127.0.0.1'

/** The network between the members of a cluster: one of them can be cut off from the others, and nothing tells of it. */
export class PeerNetwork implements AsyncDisposable {
  readonly #ports: readonly Port[]
  readonly #servers: Server[] = []
  readonly #links = new Set<Link>()
  #lonely: { readonly index: number; readonly id: string } | undefined

  private constructor(ports: readonly Port[]) {
    this.#ports = ports
  }

  /** In front of these ports, where members listen for their peers. */
  static async start(targets: readonly number[]): Promise<PeerNetwork> {
    const network = new PeerNetwork(await Promise.all(targets.map(() => reservePort())))
    for (const [index, port] of network.#ports.entries()) {
      const server = createServer(socket => network.#accept(socket, index, targets[index] as number))
      server.listen(port.number, HOST)
      await once(server, 'listening')
      network.#servers.push(server)
    }
    return network
  }

  /** Where the members are for each other. */
  get ports(): number[] {
    return this.#ports.map(({ number }) => number)
  }

  /** From now on nothing passes from or to this member. */
  cut(index: number, id: string): void {
    this.#lonely = { index, id }
    for (const link of this.#links) if (this.#isCut(link)) for (const end of link.ends) end.pause().unpipe()
  }

  heal(): void {
    const { index, id } = this.#lonely ?? {}
    this.#lonely = undefined
    for (const link of this.#links)
      if (link.to === index || link.from === id) for (const end of link.ends) end.destroy() // a stream has no holes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { ends } of this.#links) for (const end of ends) end.destroy()
    for (const server of this.#servers) server.close()
    await Promise.all(this.#ports.map(port => port.release()))
  }

  #accept(socket: Socket, to: number, target: number): void {
    const onward = connect({ host: HOST, port: target })
    const link: Link = { from: '', to, ends: [socket, onward] }
    this.#links.add(link)
    for (const [end, other] of [[socket, onward] as const, [onward, socket] as const]) {
      end.on('error', () => {})
      end.on('close', () => {
        other.destroy()
        this.#links.delete(link)
      })
    }
    socket.once('data', first => {
      link.from = /^X-Server-From: (\w+)/im.exec(first.toString('latin1'))?.[1] ?? ''
      socket.pause()
      if (this.#isCut(link)) return
      onward.write(first)
      socket.pipe(onward)
      onward.pipe(socket)
    })
  }

  #isCut({ from, to }: Link): boolean {
    return this.#lonely !== undefined && (to === this.#lonely.index || from === this.#lonely.id)
  }
}
