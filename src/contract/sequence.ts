/** Runs pieces of work one at a time, in the order of the calls. A failure does not stop the next ones. */
export class Sequence {
  #last: Promise<unknown> = Promise.resolve()

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }
}
