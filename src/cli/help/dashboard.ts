import type { CommandHelp } from './command-help.ts'

export const DASHBOARD: CommandHelp = {
  usage: 'dashboard [options]',
  entry: 'dashboard',
  summary: 'Serves a page that shows who holds and who waits',
  text: [
    'Serves a page on 127.0.0.1 and prints its address, which has a secret token. Both are valid until the command is stopped.',
  ],
  examples: [
    ['holdfast dashboard --store redis://cache:6379'],
    ['holdfast dashboard --read-only', 'without breaking leases'],
  ],
  options: [
    { flags: '--port N', text: 'Listens on this port', values: '0 to 65535', default: 'a free port' },
    { flags: '--read-only', text: 'Refuses to break leases', default: 'off' },
  ],
}
