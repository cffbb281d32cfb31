/** The last grant of a name. */
interface Last {
  readonly token: bigint
  readonly time: number
}

/** When granted requests left. */
export class Times {
  readonly #last = new Map<string, Last>()

  /** A token that is granted again, because the answer was lost, keeps its first time. */
  set(name: string, token: bigint, time: number): void {
    if (this.#last.get(name)?.token !== token) this.#last.set(name, { token, time })
  }

  get(name: string, token: bigint): number | undefined {
    const last = this.#last.get(name)
    return last?.token === token ? last.time : undefined
  }
}
