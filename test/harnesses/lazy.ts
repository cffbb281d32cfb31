import { Stack } from './stack.ts'

/** Servers that start when a test first needs them. */
export class Lazy<Value> {
  readonly stack: Stack = new Stack()
  readonly #start: (stack: Stack) => Promise<Value>
  #value: Promise<Value> | undefined

  constructor(start: (stack: Stack) => Promise<Value>) {
    this.#start = start
  }

  get value(): Promise<Value> {
    this.#value ??= this.#start(this.stack)
    return this.#value
  }

  async end(): Promise<void> {
    await this.stack.end()
  }
}
