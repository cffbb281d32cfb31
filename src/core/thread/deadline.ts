import type { LossReason } from '../../contract/lease-events.ts'
import { Deadline } from '../deadline.ts'
import type { SharedTerm } from './term.ts'

/** The deadline of a lease that another thread renews: that thread moves it through shared memory, until `detach()`. */
export class SharedDeadline extends Deadline {
  #term: SharedTerm | undefined

  constructor(term: SharedTerm, ...args: ConstructorParameters<typeof Deadline>) {
    super(...args)
    this.#term = term
  }

  get isShared(): boolean {
    return this.#term !== undefined
  }

  /** Makes this thread move the deadline from now on. The other thread sends no more requests. */
  detach(now: number): void {
    const remaining = this.#term?.stop()
    this.#term = undefined
    if (remaining !== undefined) this.move(now + remaining)
  }

  override passed(now: number, isRenewed: boolean): LossReason | undefined {
    const remaining = this.#term?.read()
    if (remaining === Number.NEGATIVE_INFINITY) return 'gone'
    if (remaining !== undefined) super.move(now + remaining)
    return super.passed(now, isRenewed)
  }

  override move(at: number): void {
    if (!this.isShared) super.move(at)
  }
}
