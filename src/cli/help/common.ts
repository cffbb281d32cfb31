import { ENGINES } from '../../engines.ts'
import type { Option } from './command-help.ts'

/** The option that names the store. */
export const STORE = '--store URL'

/** The option that every command has. */
export const HELP = '-h, --help'

/** The options of most commands. */
export const COMMON: readonly Option[] = [
  { flags: STORE, text: 'Where leases are kept', default: 'HOLDFAST_STORE, else a file of this user' },
  { flags: '--json', text: 'Prints the result and all messages as JSON', default: 'off' },
  { flags: '-q, --quiet', text: 'Prints errors only; a busy name is not an error', default: 'off' },
  { flags: HELP, text: 'Prints the help of the command' },
]

/** What DURATION means in the options. */
export const DURATION =
  'DURATION is a number and a unit (ms, s, m or h), such as 500ms, 1.5s, 5m or 1h. The longest is 596h.'

/** The URLs that `--store` accepts. Another process does not see what `memory:` holds. */
export const STORE_URLS: readonly string[] = ENGINES.filter(({ name }) => name !== 'memory').map(
  ({ example, schemes: [, ...others] }) => [example, ...others].join(' or '),
)
