/** Of the last grant of each name. */
interface Last {
  readonly token: bigint
  readonly time: number
}

/** When the requests left that were granted. Other names may have the same tokens. */
export class Times {
  readonly #last = new Map<string, Last>()

  /** A token that is granted again, since the answer was lost, keeps its first time. */
  set(name: string, token: bigint, time: number): void {
    if (this.#last.get(name)?.token !== token) this.#last.set(name, { token, time })
  }

  get(name: string, token: bigint): number | undefined {
    const last = this.#last.get(name)
    return last?.token === token ? last.time : undefined
  }
}
