import type { CommandHelp } from './command-help.ts'

export const LS: CommandHelp = {
  usage: 'ls [PREFIX] [options]',
  entry: 'ls [PREFIX]',
  summary: 'Lists holders and waiters',
  text: [
    'Lists the holder of each name, followed by its waiters in queue order. The state ran means that the last run succeeded and NAME is not run again yet.',
    'With --json, tokens are decimal strings and times are milliseconds.',
  ],
  examples: [
    ['holdfast ls'],
    ['holdfast ls nightly-', 'names that begin with nightly-'],
    ['holdfast ls --watch --json', 'one JSON object for each line'],
    [`holdfast ls --json | jq '.[] | select(.state == "held") | .name'`],
  ],
  options: [
    {
      flags: '--watch',
      text: 'Then prints a line for each change it sees',
      default: 'off',
    },
  ],
}

export const TOP: CommandHelp = {
  usage: 'top [PREFIX] [options]',
  entry: 'top [PREFIX]',
  summary: 'Shows holders and waiters on a live screen',
  text: [
    'Shows all names on a live screen, those with the most trouble first: holders that may be stuck, names that were just taken over, and long waits. Enter opens one name.',
    'Without a terminal, with TERM=dumb or --json it looks once and prints what it saw.',
  ],
  examples: [
    ['holdfast top --store redis://cache:6379'],
    ['holdfast top nightly-', 'names that begin with nightly-'],
    [`holdfast top --json | jq '.names[] | select(.troubles != []) | .name'`],
  ],
  options: [],
  sections: [
    {
      title: 'Keys',
      rows: [
        ['Up, Down, PgUp, PgDn', 'Choose a name; also k, j, Home and End'],
        ['Enter', 'Opens the name: holders, queue, nodes, past holders'],
        ['Esc', 'Goes back, and shows all names again'],
        ['/', 'Shows the names with a text in their name, owner or note'],
        ['b', 'Breaks the lease, after its name was typed; of a shared name also its slot, or all'],
        ['p', 'Pauses the screen'],
        ['q', 'Quits; also Ctrl-C'],
      ],
    },
  ],
}

export const INSPECT: CommandHelp = {
  usage: 'inspect NAME [options]',
  entry: 'inspect NAME',
  summary: 'Shows holders, token, note and waiters of a name',
  text: [
    'Shows the holder of NAME, its token, its note, the time left, and the waiters. For a shared name it shows all holders with their slots.',
  ],
  examples: [['holdfast inspect nightly'], [`holdfast inspect nightly --json | jq -r '.holders[].token'`]],
  options: [],
  exitCodes: [
    ['0', 'NAME is held'],
    ['1', 'NAME is free'],
  ],
}

export const BREAK: CommandHelp = {
  usage: 'break NAME [options]',
  entry: 'break NAME',
  summary: 'Takes the lease from its holder',
  text: [
    "Takes the lease from its holder and prints a token that is higher than the holder's. With --token it takes the lease only from the holder that you saw: if another holds NAME by now, nothing changes.",
    'If NAME is shared, say which lease: --slot, --token or --all.',
    'The holder is notified at its next renewal, at most a third of its ttl later. Until then it may go on working. A resource that checks tokens refuses it once it has seen the printed token or the token of the next holder.',
  ],
  examples: [
    ['holdfast break nightly'],
    ['holdfast break nightly --token 1795251531716000', 'only from that holder'],
    ['holdfast break nightly --json | jq -r .token'],
    ['holdfast break backup --slot 2', 'one permit of a semaphore'],
  ],
  options: [
    {
      flags: '--token N',
      text: 'Breaks the lease only if it has this token',
      values: 'as inspect shows it',
      default: 'any',
    },
    {
      flags: '--slot N',
      text: 'Breaks only the lease that has this slot',
      values: 'as inspect shows it',
      default: 'none',
    },
    { flags: '--all', text: 'Breaks all leases of a shared name', default: 'off' },
    { flags: '--marker', text: 'Removes the marker of the last successful run', default: 'off' },
  ],
  exitCodes: [
    ['0', 'The lease was taken'],
    ['1', 'NAME was free'],
    ['75', 'Another lease than that of --token holds NAME'],
  ],
}

export const MIGRATE: CommandHelp = {
  usage: 'migrate [options]',
  entry: 'migrate',
  summary: 'Creates what a store needs: tables, a container or a bucket',
  text: [
    'Creates the tables that a store over PostgreSQL, MySQL or DynamoDB needs, with the schema and functions of PostgreSQL, the container of Azure Blob Storage, or the bucket of NATS. It is safe to run again: it then updates the functions. SQLite, Redis, Redlock, etcd and ZooKeeper need none.',
  ],
  examples: [
    ['holdfast migrate --store postgres://owner@db/app'],
    [`holdfast migrate --store 'postgres://owner@db/app?table=locks.job'`],
    ['holdfast migrate --fence --store postgres://owner@db/app'],
    ['holdfast migrate --print-sql > migrations/0042-holdfast.sql'],
  ],
  options: [
    {
      flags: '--fence',
      text: 'Also creates the default fence in the same database',
      default: 'off',
    },
    {
      flags: '--print-sql',
      text: 'Prints the SQL and connects to nothing',
      values: 'without a store: SQL for the default names',
      default: 'off',
    },
  ],
}

export const TTL: CommandHelp = {
  usage: 'ttl [options]',
  entry: 'ttl',
  summary: 'Measures heartbeats and advises a ttl',
  text: [
    'Measures the latency of heartbeats and advises a ttl: the shortest one that tolerates the worst latency and one lost heartbeat, and what longer ones give.',
    'It acquires a lease with a random name, renews it at most 10 times a second, and releases it. Ctrl-C ends the measurement early and prints the result so far. With --json all times are milliseconds.',
  ],
  examples: [
    ['holdfast ttl --store redis://cache:6379'],
    ['holdfast ttl --for 10m'],
    ['holdfast ttl --json -q | jq .advice.leastTtl'],
  ],
  options: [
    {
      flags: '--for DURATION',
      text: 'How long to measure; longer finds rarer pauses',
      values: '1s to 24h',
      default: '60s',
    },
  ],
  exitCodes: [
    ['0', 'A ttl was advised'],
    ['2', 'Fewer than 20 heartbeats were answered'],
    ['69', 'The store is not available'],
  ],
}

export const FENCE: CommandHelp = {
  usage: 'fence sql | ls | advance | prune [options]',
  entry: 'fence',
  summary: 'Manages the high-water marks of fenced resources',
  text: [
    'A fenced resource keeps a high-water mark: the highest token that it has seen. It refuses lower tokens.',
    '--url says where the marks are. The leases may be in another store, so HOLDFAST_STORE is not used.',
  ],
  examples: [
    ['holdfast fence sql | psql app'],
    ['holdfast fence sql --table invoices --resource invoices | psql app'],
    ['holdfast fence ls --url postgres://db/app'],
    ['holdfast fence advance invoices --url postgres://db/app'],
    ['holdfast fence advance prices.csv --url file:///srv/exports'],
    ['holdfast fence prune customer- --older-than 90d --url redis://cache:6379'],
  ],
  options: [
    {
      flags: '--url URL',
      text: 'Where the marks are',
      values: 'see below',
      default: 'none; sql: postgres://localhost',
    },
    {
      flags: '--older-than AGE',
      text: 'With prune: age of marks; 0 needs a PREFIX',
      values: 'days or hours, such as 90d or 36h',
    },
    { flags: '--leases', text: 'With sql: adds the function that checks lease rows', default: 'off' },
    { flags: '--table TABLE', text: 'With sql: prints a trigger for this table', default: 'none' },
    { flags: '--column NAME', text: 'Column for the token of the last writer', default: 'lock_version' },
    { flags: '--resource NAME', text: 'Adds one mark for all rows of the table', default: 'none' },
    { flags: '--epoch N', text: 'The epoch of that mark', values: 'a whole number', default: '0' },
  ],
  isStoreless: true,
  sections: [
    {
      title: 'Commands',
      rows: [
        ['sql', 'Prints the SQL of the marks (PostgreSQL, MySQL, SQLite)'],
        ['sql --table TABLE', 'Prints a PostgreSQL trigger that refuses stale holders'],
        ['ls [PREFIX]', 'Lists resource, epoch, token and last update'],
        ['advance RESOURCE', 'Starts the next epoch of a resource; prints it'],
        ['prune [PREFIX]', 'Removes marks older than --older-than'],
      ],
    },
    {
      title: 'URLs (--url)',
      rows: [
        ['postgres://host/database', 'Options: ?table=[SCHEMA.]TABLE of the marks'],
        ['mysql://host/database', 'Option: ?table=… of the marks'],
        ['redis://host:6379', 'Option: ?prefix=…'],
        ['sqlite:PATH', 'The file with the data and its marks'],
        ['file:///FOLDER', 'Fenced files; a resource is a path from FOLDER'],
      ],
      text: ['Objects keep their marks themselves: change those with holdfast/fencing/objects.'],
    },
    {
      title: 'Dangers',
      rows: [
        ['advance', 'Refuses every holder whose fence has a lower epoch'],
        ['prune', 'A holder that was paused for longer can write again'],
      ],
      text: [
        'Use advance after a move to another store or a restored backup. Give every fence of the resource the new epoch only when no earlier holder is still running. Prune only marks that are older than any process can be paused.',
      ],
    },
  ],
  exitCodes: [
    ['0', 'Done'],
    ['1', 'With advance: the resource has no mark'],
  ],
}
