import type { ParseArgsOptionsConfig, parseArgs } from 'node:util'

/** What `holdfast` provides to its command `prove`. `src/cli/prove.ts` has the implementation. */
export interface CommandLine {
  /** Node's `parseArgs`. Throws `Usage`. */
  parse<const T extends ParseArgsOptionsConfig>(
    command: string,
    args: string[],
    options: T,
  ): ReturnType<typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>>
  /** Milliseconds of `500ms`, `1.5s` or `5m`. Throws `Usage`. */
  parseDuration(text: string, option: string): number
  formatDuration(ms: number): string
  /** `1 name`, `2 names`. */
  counted(count: number, noun: string, plural?: string): string
  /** The URL of `--store`, checked. */
  storeUrl(option: string, output: Output): string
  /** `: did you mean …?`, or nothing. */
  suggest(word: string, known: readonly string[]): string
  seeHelp(command: string): string
  /** Hides passwords. */
  mask(text: string): string
  paint(format: 'bold' | 'dim' | 'red' | 'yellow' | 'green', text: string): string
  /** Aborts when a signal ends this process. `when` ends the sentence that reports it. */
  stopSignal(when: string): AbortSignal
  /** Removes what the store at this URL keeps of these names. */
  forgetNames(url: string, names: readonly string[]): Promise<void>
  readonly Output: new (options: { json?: boolean | undefined; quiet?: boolean | undefined }) => Output
  /** Wrong usage: exit code 64. */
  readonly Usage: new (
    message: string,
  ) => Error
}

export interface Output {
  /** The result. */
  print(data: unknown, text: string): void
  info(event: string, text: string, data?: Record<string, unknown>): void
  warn(event: string, text: string, data?: Record<string, unknown>): void
}
