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

/** The URLs that `--store` accepts. */
export const STORE_URLS: readonly string[] = [
  'sqlite:PATH',
  'redis://host:6379, rediss://host:6379',
  'redlock://a:6379,b:6379,c:6379',
  'postgres://host/database',
  'mysql://host/database',
  'nats://host/bucket',
  'etcd://host:2379,host:2379, etcds://host:2379',
  'zookeeper://host:2181,host:2181/chroot',
  'dynamodb://REGION/TABLE',
  'azure-blob:CONTAINER',
]
