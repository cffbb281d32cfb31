import { NEVER } from './acquisition.ts'
import type { Event } from './history.ts'

/** One request to the store. Times are milliseconds. */
export class Request {
  readonly asked: Event<'requested'>
  /** `undefined`: its outcome is not known. */
  answer: Event<'answered'> | undefined

  constructor(asked: Event<'requested'>) {
    this.asked = asked
  }

  get sent(): number {
    return this.asked.at
  }

  /** When its answer was received, or `NEVER`. */
  get received(): number {
    return this.answer?.at ?? NEVER
  }

  get is(): Event<'answered'>['is'] | undefined {
    return this.answer?.is
  }
}

/** An acquire without an answer. */
export function mayBeGranted({ asked, is }: Request): boolean {
  return asked.verb === 'acquire' && is === undefined
}
