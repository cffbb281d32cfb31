import type { CommandHelp, Option, Section } from './command-help.ts'

const ENVIRONMENT: Section = {
  title: 'Environment of COMMAND',
  rows: [
    ['HOLDFAST_NAME', 'NAME, or that of the permit (NAME#2) where names cannot be shared'],
    ['HOLDFAST_TOKEN', 'The fencing token, higher for each grant: 33, or with --limit and --reader TOKEN/LIMIT:SLOTS'],
    ['HOLDFAST_SLOT', 'With --limit or --reader: the slot that is held, from 0'],
    ['HOLDFAST_TOKENS', 'The token of each name that is held, as JSON: {"NAME":"33"}'],
    ['HOLDFAST_OWNER', 'The owner of the lease'],
    ['HOLDFAST_STORE', 'The URL of the store, with its password'],
  ],
}

/** The options for metrics. `when`: a text that says when they are served. */
function metrics(when: string): readonly Option[] {
  return [
    {
      flags: '--metrics-port [HOST:]PORT',
      text: `Serves /metrics for Prometheus${when}`,
      values: 'PORT 1 to 65535; HOST is 127.0.0.1 unless given',
      default: 'off',
    },
    {
      flags: '--metrics-file PATH',
      text: 'Writes the metrics for the textfile collector, every 15 s',
      values: 'ends in .prom',
      default: 'off',
    },
  ]
}

const TTL: Option = {
  flags: '--ttl DURATION',
  text: 'How long a lease lasts without renewal',
  values: 'at least 500ms, over etcd 1s',
  default: '10s',
}

const HOLD: readonly Option[] = [
  {
    flags: '--grace DURATION',
    text: 'Time between SIGTERM and SIGKILL',
    values: 'up to a third of the ttl',
    default: 'a quarter of the ttl, at most 5s',
  },
  {
    flags: '--on-lost ACTION',
    text: 'What to do when the lease is lost',
    values: 'kill, term or ignore',
    default: 'kill',
  },
  { flags: '--note TEXT', text: 'Shown by ls and inspect', values: 'up to 255 bytes', default: 'empty' },
  {
    flags: '--owner TEXT',
    text: 'Name of the holder',
    values: 'up to 255 bytes',
    default: 'host, process id and random characters',
  },
]

export const RUN: CommandHelp = {
  usage: 'run NAME [options] -- COMMAND [ARGUMENT …]',
  entry: 'run NAME -- COMMAND',
  summary: 'Runs COMMAND while it holds the lease NAME',
  text: [
    'Acquires the lease NAME, runs COMMAND, and releases the lease when COMMAND ends. If the lease is lost, COMMAND is ended before another process can acquire NAME. COMMAND gets standard input, output and error.',
    'A lease is renewed every third of its ttl.',
  ],
  examples: [
    ['holdfast run nightly -- node invoices.js', 'busy: exit code 75 at once'],
    ['holdfast run nightly -q -E 0 -- node invoices.js', 'for cron: a busy name is a success'],
    ['holdfast run nightly --wait 5m -- ./backup.sh', 'waits up to 5 minutes'],
    ['holdfast run migrate --wait forever --max 1h -- ./migrate.sh'],
    ['holdfast run nightly -q -E 0 --skip-if-ran-since 12h -- node invoices.js', 'once a day'],
    ['holdfast run ledger --also account:7 --wait 1m -- node transfer.js', 'both names, or none'],
    ['holdfast run backup --limit 3 --wait 1h -- ./backup.sh', 'no more than three at a time'],
    [`holdfast run deploy -- sh -c 'echo "token $HOLDFAST_TOKEN"; ./deploy.sh'`],
  ],
  options: [
    {
      flags: '--also NAME',
      text: 'Holds this name as well, all or none; repeatable',
      values: 'up to 63 more names, in any order',
      default: 'NAME alone',
    },
    {
      flags: '--limit N',
      text: 'Acquires one of N permits of NAME',
      values: '1 to 2^31 - 1, the same everywhere',
      default: '1',
    },
    { flags: '--reader', text: 'Holds NAME as one of any number of readers', default: 'off' },
    { flags: '--writer', text: 'Holds NAME as its only writer', default: 'off' },
    {
      flags: '--wait DURATION',
      text: 'How long to wait for a busy name',
      values: 'or forever',
      default: '0s',
    },
    TTL,
    { flags: '--max DURATION', text: 'Ends COMMAND after this time', default: 'no limit' },
    ...HOLD.slice(0, 2),
    {
      flags: '--at-least DURATION',
      text: 'Holds NAME at least this long after acquiring it',
      default: '0s',
    },
    {
      flags: '--skip-if-ran-since DURATION',
      text: 'Skips COMMAND if a successful run began within this time',
      values: 'half the time between runs',
      default: 'never skips',
    },
    {
      flags: '-E, --conflict-exit-code N',
      text: 'Exit code if NAME is busy, without --wait',
      values: '0 to 255',
      default: '75',
    },
    ...HOLD.slice(2),
    ...metrics(' while COMMAND runs'),
  ],
  sections: [
    {
      title: 'When the lease is lost (--on-lost)',
      rows: [
        ['kill', 'SIGTERM, then SIGKILL before the lease ends'],
        ['term', 'SIGTERM only'],
        ['ignore', 'COMMAND goes on'],
      ],
    },
    ENVIRONMENT,
  ],
  exitCodes: [
    ['any', 'The exit code of COMMAND'],
    ['0', 'Also: --skip-if-ran-since skipped COMMAND'],
    ['128 + n', 'Signal n ended COMMAND, or holdfast while it waited'],
    ['75', 'NAME or one of --also is busy, without --wait'],
    ['124', 'NAME or one of --also was busy for all of --wait'],
    ['76', 'The lease was lost, or --max was reached'],
    ['69', 'The store or its driver is not available'],
    ['77', 'The store refused the user, or a permission is missing'],
    ['78', 'The store is not migrated, or of another version'],
    ['64', 'Wrong usage'],
    ['126', 'COMMAND is not executable'],
    ['127', 'COMMAND does not exist'],
  ],
}

export const ELECT: CommandHelp = {
  usage: 'elect NAME [options] -- COMMAND [ARGUMENT …]',
  entry: 'elect NAME -- COMMAND',
  summary: 'Keeps one instance of COMMAND running among many hosts',
  text: [
    'Start it with the same NAME on many hosts: the leader runs COMMAND, the others wait. When COMMAND ends, the next candidate in the queue leads and starts it. If the lease is lost, COMMAND is ended before another candidate can lead.',
    'A lease is renewed every third of its ttl.',
  ],
  examples: [
    ['holdfast elect scheduler -- node scheduler.js'],
    ['holdfast elect mailer --ttl 5s --note "$(hostname)" -- ./consume.sh', 'inspect shows the note'],
  ],
  options: [
    TTL,
    {
      flags: '--pause DURATION',
      text: 'Pause between two campaigns; each failure doubles it',
      values: 'at least 10ms; after a failure half of it is random',
      default: '1s',
    },
    {
      flags: '--max-pause DURATION',
      text: 'Longest pause; a longer run or wait resets it',
      values: 'at least --pause',
      default: '30s',
    },
    ...HOLD,
    ...metrics(', also while another leads'),
  ],
  sections: [
    {
      title: 'Signals',
      rows: [
        ['TERM, INT, HUP, QUIT', 'End COMMAND, release NAME, end holdfast'],
        ['USR1, USR2', 'Are forwarded to COMMAND'],
      ],
    },
    ENVIRONMENT,
  ],
  exitCodes: [
    ['any', 'After a signal: the exit code of COMMAND'],
    ['128 + n', 'Signal n ended holdfast while COMMAND did not run'],
    ['69', 'The store, its driver or the metrics port is not available'],
    ['77', 'The store refused the user, or a permission is missing'],
    ['78', 'The store is not migrated, or of another version'],
    ['64', 'Wrong usage'],
    ['126', 'COMMAND is not executable'],
    ['127', 'COMMAND does not exist'],
  ],
}

export const DEMO: CommandHelp = {
  usage: 'demo',
  entry: 'demo',
  summary: 'Shows a takeover and a refused write, in half a minute',
  text: [
    'Starts five replicas of a job that writes 60 invoices to a ledger. One replica runs at a time. It kills one with SIGKILL and pauses another for longer than its ttl. The ledger refuses the late write. At the end each order has exactly one invoice.',
    'Leases and ledger are files in a temporary folder, which it deletes.',
  ],
  examples: [['npx holdfast demo']],
  options: [],
  hasOnlyHelp: true,
}
