import { ENGINES } from '../../engines.ts'
import type { CommandHelp } from './command-help.ts'

/** The engines of the fault lab: those of URLs, and two that have no URL of their own. */
const LAB_ENGINES: readonly string[] = [
  ...ENGINES.map(({ name }) => name).filter(name => name !== 'memory'),
  ...['redis-sentinel', 'postgres-advisory'],
]

export const PROVE: CommandHelp = {
  usage: 'prove --lab ENGINE | --store URL | --judge FILE [options]',
  entry: 'prove',
  summary: 'Injects faults and reports which promises were kept',
  text: [
    'Client processes compete for names and write to a guarded resource while faults are injected. Then it reports which promises were kept. It runs on Linux.',
    'It needs the package holdfast-lab: npm install --save-dev holdfast-lab',
  ],
  examples: [
    ['holdfast prove --lab redis'],
    ['holdfast prove --lab etcd --duration 5m --seed 42'],
    ['holdfast prove --lab postgres --faults client,server-kill'],
    ['holdfast prove --store redis://cache:6379 --duration 1m'],
    ['holdfast prove --lab redis --sharing', 'permits, readers and writers'],
    ['holdfast prove --lab redis --known-violation', 'two clients believe that they hold a name'],
    ['holdfast prove --lab redis --no-fence', 'what happens without fencing tokens'],
    ['holdfast prove --judge events.jsonl.gz', 'judges the events of an earlier run again'],
  ],
  options: [
    { flags: '--lab ENGINE', text: 'Starts servers on this machine', values: 'see below' },
    { flags: '--store URL', text: 'Uses external servers; faults hit only the clients', default: 'none' },
    { flags: '--judge FILE', text: 'Runs nothing; judges what --events wrote', values: 'JSON lines, or .gz of them' },
    {
      flags: '--faults LIST',
      text: 'Faults to inject, separated by commas',
      values: 'faults, groups (client, network, server, address, clock), all or none',
      default: 'what the engine tolerates',
    },
    {
      flags: '--duration DURATION',
      text: 'How long faults are injected',
      values: '3 ttls to 24h; with --store to 10m',
      default: '30s',
    },
    { flags: '--seed N', text: 'Repeats the faults of an earlier run', values: '0 to 4294967295', default: 'random' },
    { flags: '--clients N', text: 'Client processes', values: '2 to 64; with --store to 8', default: '5' },
    {
      flags: '--names N',
      text: 'Names that every client competes for',
      values: '1 to 64; with --store to 4',
      default: '3',
    },
    { flags: '--ttl DURATION', text: 'The ttl of leases', values: '500ms to 60s', default: '1s' },
    { flags: '--sharing', text: 'Permits, readers and writers, not leases', default: 'off' },
    { flags: '--no-fence', text: 'Accepts every write, whatever its token', default: 'off' },
    { flags: '--known-violation', text: 'Shows what the engine does not promise', default: 'off' },
    { flags: '--events FILE', text: 'Writes all events to a new file, as JSON lines', default: 'off' },
    { flags: '--report FILE', text: 'Writes a web page with a timeline', default: 'off' },
  ],
  sections: [
    {
      title: 'Engines',
      rows: [],
      text: [LAB_ENGINES.join(', ')],
    },
    {
      title: 'Faults',
      rows: [
        ['client', 'client-pause, client-kill, client-block, client-late'],
        ['network', 'cut, cut-requests, cut-replies, delay, late, reset, far'],
        [
          'server',
          'server-pause, server-kill, server-forget, session-end, switchover, failover, stale-failover, leader-kill, leader-pause, leader-cut',
        ],
        ['address', 'first-address, name-server'],
        ['clock', 'client-clock, client-speed, server-clock, majority-clock'],
      ],
      text: ['Not every engine has all of them.'],
    },
  ],
  exitCodes: [
    ['0', 'No promise was broken; with --known-violation: it was shown'],
    ['1', 'A promise was broken; with --known-violation: another one'],
    ['2', 'Too few events to judge; with --known-violation: not shown'],
  ],
}
