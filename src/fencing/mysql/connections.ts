import type { Client } from './client.ts'

/** A set of connections. `connection.promise()` of mysql2 returns another object each time, for the same connection. */
export class Connections {
  readonly #shared = new WeakSet<object>()

  add(client: Client): void {
    this.#shared.add(sharedBy(client))
  }

  has(client: Client): boolean {
    return this.#shared.has(sharedBy(client))
  }

  delete(client: Client): void {
    this.#shared.delete(sharedBy(client))
  }
}

const sharedBy = (client: Client): object => client.connection ?? client
