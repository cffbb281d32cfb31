/** How much a word counts on a page, by the beginning of its address. The first that fits counts, 0 omits the page. */
const WEIGHTS: readonly (readonly [pages: RegExp, weight: number])[] = [
  // They contain every word, and would hide the page that answers.
  [/^(pages|api|decisions|architecture|contributing|changelog|code-of-conduct)\b/, 0],
  [/^(guides|sharing|faq|troubleshooting|start)\b/, 2],
  [/^(stores|coming-from|drop-ins|proof|reference|performance|comparison|security|lab)\b/, 0.5],
  [/^/, 1],
]

/** What people type who do not know our words, for the page that answers them. */
const ASKED: Readonly<Record<string, readonly string[]>> = {
  'guides/cron': ['cron twice', 'cron on every replica', 'two pods run the same job', 'scheduled job duplicate'],
  'guides/cache': ['cache stampede', 'thundering herd', 'dogpile', 'single flight', 'cache lock'],
  'guides/leader-election': [
    'two pods',
    'multiple instances',
    'only one instance',
    'active passive',
    'standby',
    'Kubernetes lease',
    'singleton',
  ],
  'guides/long-job': ['extend the lock', 'rolling deploy', 'SIGTERM', 'graceful shutdown', 'job longer than the ttl'],
  'guides/migration': ['run migrations once', 'schema migration on deploy'],
  'guides/once-per-request': [
    'duplicate request',
    'double click',
    'double payment',
    'idempotency key',
    'webhook twice',
  ],
  'guides/singleton-consumer': ['only one consumer', 'single worker', 'exclusive consumer'],
  'guides/testing': ['mock', 'unit tests', 'jest', 'vitest', 'fake clock'],
  'guides/serverless': ['lambda', 'vercel', 'cloudflare workers', 'esbuild', 'webpack'],
  'sharing/semaphore': [
    'semaphore',
    'limit concurrency',
    'concurrency limit',
    'at most N at a time',
    'throttle',
    'max parallel',
  ],
  'sharing/readers-and-writers': ['read write lock', 'shared lock', 'rwlock', 'exclusive lock'],
  'sharing/several-names': ['lock multiple resources', 'lock many keys', 'multilock', 'deadlock'],
  'concepts/fencing': ['stale holder', 'zombie writer', 'fencing token'],
  'concepts/heartbeat-thread': ['event loop blocked', 'CPU heavy', 'synchronous work'],
  'concepts/lease': [
    'distributed lock',
    'mutex',
    'extend lock',
    'auto extend',
    'auto renew',
    'watchdog',
    'expired lock',
    'lock expires',
  ],
  'concepts/redlock': ['is redlock safe', 'Kleppmann', 'antirez'],
  'concepts/time': ['clock skew', 'NTP', 'GC pause', 'laptop sleep'],
  'coming-from/redlock': ['node-redlock', 'migrate from redlock', 'unable to achieve a quorum', 'ExecutionError'],
  'coming-from/redis-semaphore': ['migrate from redis-semaphore', 'lost lock callback'],
  'operations/managed-redis': ['elasticache', 'upstash', 'memorydb', 'azure cache', 'dragonfly', 'sentinel', 'cluster'],
  'operations/dashboard': ['ui', 'web page', 'admin'],
  'operations/metrics': ['prometheus', 'grafana', 'opentelemetry', 'datadog', 'monitoring'],
  'operations/ttl': ['which ttl', 'ttl too short', 'how long should the timeout be'],
  'reference/clients': ['ioredis options', 'TLS', 'password'],
  'stores/redis': ['redis', 'valkey', 'sentinel', 'redis cluster'],
  'stores/postgres': ['postgres', 'pgbouncer', 'skip locked'],
  'stores/mysql': ['GET_LOCK', 'RDS', 'Aurora'],
  faq: ['redis down', 'who holds the lock', "unlock someone else's lock", 'force unlock', 'stuck lock', 'reentrant'],
  troubleshooting: [
    'connection refused',
    'lease lost',
    'lock lost',
    "unlock someone else's lock",
    'force unlock',
    'stuck lock',
    'redis down',
  ],
}

/** How much the words of a page count in the search. 0 for a page that it omits. */
export function weightOf(address: string): number {
  return WEIGHTS.find(([pages]) => pages.test(address))?.[1] ?? 1
}

/** What is searched with a page, but not shown. */
export function asked(address: string): string {
  const words = ASKED[address]
  return words ? `<span hidden data-pagefind-meta="asked">${words.join(' · ')}</span>` : ''
}
