/** What a person needs to know about one command. `--help` and docs/reference/cli.md are generated from it. */
export interface CommandHelp {
  /** The text after `holdfast`, such as `inspect NAME [options]`. */
  readonly usage: string
  /** The name and arguments in the list of commands, such as `inspect NAME`. */
  readonly entry: string
  /** One line in the list of commands. */
  readonly summary: string
  /** Paragraphs below the usage. */
  readonly text: readonly string[]
  /** Command lines, each with what it does. */
  readonly examples: readonly (readonly [command: string, effect?: string])[]
  /** The options in addition to those of every command. */
  readonly options: readonly Option[]
  /** The command has no `--store`. */
  readonly isStoreless?: true
  /** The command has none of the options of the others. */
  readonly hasOnlyHelp?: true
  readonly exitCodes?: readonly ExitCode[]
  /** Further lists, such as the environment of COMMAND. */
  readonly sections?: readonly Section[]
}

export interface Option {
  /** The option as it is typed, such as `--wait DURATION`. */
  readonly flags: string
  /** What it does, in a few words. */
  readonly text: string
  /** The accepted values, with their unit if the placeholder does not say it. */
  readonly values?: string
  /** The value that applies without the option. */
  readonly default?: string
}

type ExitCode = readonly [code: string, meaning: string]

export interface Section {
  readonly title: string
  /** Terms and what each means. */
  readonly rows: readonly (readonly [term: string, meaning: string])[]
  /** Paragraphs below the rows. */
  readonly text?: readonly string[]
}
