import type { LossReason } from '../../contract/lease-events.ts'
import { Deadline } from '../deadline.ts'
import type { SharedTerm } from './term.ts'

/** The deadline of a lease that another thread renews: that thread moves it through shared memory, until `detach()`. */
export class SharedDeadline extends Deadline {
  #term: SharedTerm | undefined
  #isGone = false

  constructor(term: SharedTerm, ...args: ConstructorParameters<typeof Deadline>) {
    super(...args)
    this.#term = term
  }

  get isShared(): boolean {
    return this.#term !== undefined
  }

  /** Makes this thread move the deadline from now on. The other thread sends no request that it has not written yet. */
  detach(now: number): void {
    const last = this.#term?.stop()
    this.#term = undefined
    this.#follow(now, last)
  }

  override passed(now: number, isRenewed: boolean): LossReason | undefined {
    this.#follow(now, this.#term?.read())
    return this.#isGone ? 'gone' : super.passed(now, isRenewed)
  }

  #follow(now: number, remaining: number | undefined): void {
    if (remaining === Number.NEGATIVE_INFINITY) this.#isGone = true
    else if (remaining !== undefined) super.move(now + remaining)
  }

  override move(at: number): void {
    if (!this.isShared) super.move(at)
  }
}
