import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { connectedTo, quit } from '../clients.ts'
import { type Peer, pause } from '../peer.ts'
import { release } from './floor.ts'

interface Scripts {
  releaseLease(key: string, id: string): Promise<number>
}

// The least that Redlock takes: no token, no look at how long it took, nobody is told of a loss.
export const peer: Peer = {
  label: 'floor: the plain commands at all five',
  over: 'redlock',
  can: ['pairs', 'wait'],
  isFloor: true,
  async open(place) {
    const clients = (await connectedTo(place)) as unknown as (Redis & Scripts)[]
    for (const client of clients) client.defineCommand('releaseLease', { numberOfKeys: 1, lua: release })
    const most = mostOf(clients)
    const remove = (name: string, id: string): Promise<boolean> =>
      most(
        client => client.releaseLease(name, id),
        () => true,
      )
    return {
      async acquire(name, ttl) {
        for (;;) {
          const id = randomUUID()
          const isHeld = await most(
            client => client.set(name, id, 'PX', ttl, 'NX'),
            reply => reply === 'OK',
          )
          if (isHeld) return () => remove(name, id)
          await remove(name, id)
          await pause(25 + Math.random() * 50)
        }
      },
      close: () => quit(clients),
    }
  },
}

/** Asks all at once; settles with the majority: do so many say yes? */
export function mostOf<Client>(clients: readonly Client[]) {
  const majority = Math.floor(clients.length / 2) + 1
  return <Reply>(ask: (client: Client) => Promise<Reply>, isYes: (reply: Reply) => boolean): Promise<boolean> =>
    new Promise(resolve => {
      let [yes, no] = [0, 0]
      const count = (isOne: boolean): void => {
        if (isOne) yes += 1
        else no += 1
        if (yes === majority) resolve(true)
        else if (no > clients.length - majority) resolve(false)
      }
      for (const client of clients)
        ask(client).then(
          reply => count(isYes(reply)),
          () => count(false),
        )
    })
}
