import { Usage } from './failure.ts'
import { paint } from './output.ts'

const GENERAL = `Usage: holdfast COMMAND

One at a time, on one machine or many: a lease with a name, and a token that outranks every earlier holder.

Commands
  run NAME -- COMMAND   holds the lease NAME while COMMAND runs
  elect NAME -- COMMAND keeps one COMMAND running, on whichever machine leads NAME
  ls [PREFIX]           who holds what, and who waits for it
  inspect NAME          all about one name
  break NAME            takes the lease from its holder
  migrate               makes the tables of a PostgreSQL store
  ttl                   measures heartbeats, and advises a ttl
  fence                 the marks by which a resource refuses old holders
  prove                 injects faults and reports which promises were kept

Examples
  holdfast run nightly -- node invoices.js
  holdfast run nightly --wait forever -- ./backup.sh
  holdfast elect scheduler -- node scheduler.js
  HOLDFAST_STORE=redis://cache:6379 holdfast ls

Options of every command
  --store URL     where leases are kept: sqlite:PATH, redis://host:6379, rediss://…,
                  redlock://a:6379,b:6379,c:6379, postgres://host/database,
                  mysql://host/database, etcd://host:2379,host:2379, etcds://…, zookeeper://host:2181,host:2181/chroot
                  Default: HOLDFAST_STORE, else a file of this user on this machine.
                  With a password use HOLDFAST_STORE: ps shows --store to every user.
  --json          results as JSON on standard output, everything else as JSON lines on standard error
  -q, --quiet     print errors only
  -h, --help      help on the command
  --version       the version of Holdfast
`

const RUN = `Usage: holdfast run NAME [options] -- COMMAND [ARGUMENT …]

Holds the lease NAME while COMMAND runs. COMMAND gets standard input and is ended before another can hold NAME.

Examples
  holdfast run nightly -- node invoices.js                 if another holds it: exit code 75 at once
  holdfast run nightly -q -E 0 -- node invoices.js         for cron: whoever comes first runs, the others are content
  holdfast run nightly --wait 5m -- ./backup.sh            waits up to 5 minutes for its turn
  holdfast run migrate --wait forever --max 1h -- ./migrate.sh
  holdfast run nightly -q -E 0 --at-least 1m --skip-if-ran-since 20h -- node invoices.js
                                                           once a day, although the clocks of the hosts differ
  holdfast run deploy -- sh -c 'echo "token $HOLDFAST_TOKEN"; ./deploy.sh'

Options
  --wait 5m|forever     wait for the name (default: do not wait)
  --ttl 10s             how long the lease outlives a machine that dies; renewed every third of it
  --max 1h              end the command after this time: SIGTERM, and SIGKILL after the grace
  --grace 2.5s          time from SIGTERM to the end of the lease when renewals fail
                        (default: a quarter of the ttl, at most 5s; never more than a third)
  --on-lost kill        what to do when the lease is lost: kill (SIGTERM, then SIGKILL before the lease ends),
                        term (SIGTERM only) or ignore (the command goes on)
  --at-least 30s        keep the name for so long since it was had, also when COMMAND ends sooner
  --skip-if-ran-since 1h
                        if a run of NAME with this option ended well (exit code 0) within the time that it gave:
                        skip COMMAND, exit code 0
  -E, --conflict-exit-code 75
                        exit code when another holds the name and --wait was not given
  --note TEXT           shown to all who ask who holds the name
  --owner TEXT          who holds it (default: host, process and a random part)
  --metrics-port 9464   serve /metrics for Prometheus while COMMAND runs, on this machine alone or at HOST:PORT
  --metrics-file PATH.prom
                        write them, and how the last run went, for the textfile collector of the node exporter
  --store URL, --json, -q, --quiet: see holdfast --help

Environment of COMMAND
  HOLDFAST_NAME, HOLDFAST_TOKEN (the fencing token), HOLDFAST_OWNER, HOLDFAST_STORE

Exit codes
  the command's own, or 128 + n if signal n ended it
  75   held by another            64   wrong usage
  124  waited in vain             69   the store is not available
  76   the lease was lost         126  COMMAND is not executable, 127: not found
`

const ELECT = `Usage: holdfast elect NAME [options] -- COMMAND [ARGUMENT …]

Keeps one instance of COMMAND running, wherever this is started with the same NAME: one leads and runs it, the others
wait. When COMMAND ends it is started again, elsewhere if another waits. It is ended before another can lead.

Examples
  holdfast elect scheduler -- node scheduler.js
  holdfast elect mailer --ttl 5s --note "$(hostname)" -- ./consume.sh    the note is shown by holdfast inspect mailer

Options
  --ttl 10s             how long the lease outlives a machine that dies; renewed every third of it
  --pause 1s            from the end of COMMAND until NAME is tried for again; it doubles with each failure in a row
                        (random between half of it and all)
  --longest-pause 30s   what it doubles up to; a COMMAND that ran for so long begins anew
  --grace 2.5s          time from SIGTERM to the end of the lease when renewals fail
                        (default: a quarter of the ttl, at most 5s; never more than a third)
  --on-lost kill        what to do when the lease is lost: kill, term or ignore; see holdfast run --help
  --note TEXT           shown to all who ask who leads
  --owner TEXT          who leads (default: host, process and a random part)
  --metrics-port 9464   serve /metrics for Prometheus, also while another leads, on this machine alone or at HOST:PORT
  --metrics-file PATH.prom
                        write them for the textfile collector of the node exporter
  --store URL, --json, -q, --quiet: see holdfast --help

Signals
  SIGTERM, SIGINT, SIGHUP and SIGQUIT are passed on to COMMAND; when it has ended, NAME is given back and the next in
  line leads. SIGUSR1 and SIGUSR2 are passed on only.

Environment of COMMAND
  HOLDFAST_NAME, HOLDFAST_TOKEN (the fencing token, higher with each term), HOLDFAST_OWNER, HOLDFAST_STORE

Exit codes
  after a signal: that of COMMAND, or 128 + n if it did not run
  126  COMMAND is not executable      127  not found
  64   wrong usage                    69   the store cannot be used
`

const LS = `Usage: holdfast ls [PREFIX] [options]

Lists who holds what, each followed by those who wait for it in their order.

Examples
  holdfast ls
  holdfast ls nightly-
  holdfast ls --json | jq '.[] | select(.state == "held") | .name'

Options: --store URL, --json (tokens are decimal strings, times milliseconds); see holdfast --help
`

const INSPECT = `Usage: holdfast inspect NAME [options]

All about one name: holder, token, note, time left, and who waits. Exit code 1 if nobody holds it.

Examples
  holdfast inspect nightly
  holdfast inspect nightly --json | jq -r '.holder.token'

Options: --store URL, --json; see holdfast --help
`

const BREAK = `Usage: holdfast break NAME [options]

Takes the lease from its holder and prints the token that now outranks it. Exit code 1 if nobody held it.

The holder learns of it at its next renewal (a third of its ttl later at the latest) and may be at work until then.
A resource that checks tokens refuses it once the next holder has written, or once it was shown the printed token.

Examples
  holdfast break nightly
  holdfast break nightly --json | jq -r .token

Options: --store URL, --json; see holdfast --help
`

const MIGRATE = `Usage: holdfast migrate [options]

Makes the schema, tables and functions that a PostgreSQL store keeps leases in, and brings the functions up to date.
It may be run again and again. Other stores make by themselves what they need.

Examples
  holdfast migrate --store postgres://owner@db/app
  holdfast migrate --store 'postgres://owner@db/app?schema=locks&table=job'
  holdfast migrate --print-sql > migrations/0042-holdfast.sql

Options
  --print-sql     print the SQL and do nothing; without a store, for the default names
  --store URL, --json; see holdfast --help
`

const TTL = `Usage: holdfast ttl [options]

Measures how long heartbeats take and advises a ttl: the shortest that lives through what was seen and one lost
heartbeat, and what longer ones give. It holds a lease of a name of its own, renews it at most 10 times a second,
and releases it. Ctrl-C ends it with what was measured so far.

Examples
  holdfast ttl --store redis://cache:6379
  holdfast ttl --for 10m
  holdfast ttl --json -q | jq .advice.leastTtl

Options
  --for 60s       for how long, from 1s to 24h; longer sees rarer pauses
  --store URL, --json (all times in milliseconds), -q, --quiet: see holdfast --help

Exit codes
  0  a ttl was advised          2  too few heartbeats were answered
`

const FENCE = `Usage: holdfast fence sql | ls | advance | prune [options]

What is fenced keeps a mark for each resource: the highest token that it was shown. It refuses lower ones.

  sql                       prints the SQL of the table of marks and its function (PostgreSQL, SQLite)
  sql --table TABLE         prints a trigger of PostgreSQL that refuses an update of a row by an older holder
  ls [PREFIX]               the marks
  advance RESOURCE          begins another lineage, after a move to another store or a restored backup
  prune [PREFIX] --older-than 90d
                            forgets marks that were not raised for so long

Examples
  holdfast fence sql | psql app
  holdfast fence sql --table invoices --resource invoices | psql app
  holdfast fence ls --url postgres://db/app
  holdfast fence advance invoices --url postgres://db/app
  holdfast fence advance prices.csv --url file:///srv/exports
  holdfast fence prune customer- --older-than 90d --url redis://cache:6379

Dangers
  advance refuses every holder until its fence is given the new lineage, and from then on nothing protects from a
  holder of the old lineage but that its fence is not given the new one.
  prune lets a holder write that has been stopped for longer than the age: choose one that no process can outlast.
  Both are safe when no holder of before is at work.

Options
  --url URL           where the fenced data and its marks are: postgres://host/database?schema=…&table=…,
                      redis://host:6379?prefix=…, sqlite:PATH, file:///FOLDER of fenced files, each of which is a
                      resource by its path from there. The store of the leases may be another. Marks of objects are
                      in the objects: holdfast/fencing/objects changes them.
  --column NAME       of the table, for the token of the last writer (default: lock_version)
  --resource NAME     one mark for all rows of the table, beside that of each row
  --lineage N         of that mark (default: 0)
  --leases            with sql: also a function that looks at the row of the lease, where leases are in this database
  --json, -q, --quiet: see holdfast --help
`

const PROVE = `Usage: holdfast prove --lab ENGINE | --store URL [options]

Client processes compete for names and write to a guarded resource while faults are injected. Then it reports which
promises were kept. --lab starts servers on this machine. --store uses external servers; faults hit only the clients.
It is in a package of its own: npm install --save-dev holdfast-lab

Engines
  sqlite, redis, redis-sentinel, redlock, postgres, postgres-advisory, mysql, etcd, zookeeper

Examples
  holdfast prove --lab redis
  holdfast prove --lab etcd --duration 5m --seed 42
  holdfast prove --lab postgres --faults client,server-kill
  holdfast prove --store redis://cache:6379 --duration 1m
  holdfast prove --lab redis --known-violation       two clients believe to be the holder
  holdfast prove --lab redis --no-fence              what happens without fencing tokens

Options
  --faults LIST   names or groups (client, network, server, clock) with commas between, all, or none
                  client-pause, client-kill, client-block, client-clock, cut, cut-requests, cut-replies, delay, late,
                  reset, server-pause, server-kill, server-forget, server-clock, majority-clock, session-end, failover,
                  stale-failover, leader-kill, leader-pause, leader-cut
                  (default: what the engine tolerates; not every engine has all of them)
  --duration 30s  how long faults are injected
  --seed N        repeat the plan of faults of an earlier run (default: random, shown)
  --clients 5     client processes
  --names 3       names that every client competes for
  --ttl 1s        the ttl of leases
  --no-fence      accept every write, whatever its token
  --known-violation
                  show what the engine does not promise: two clients believe to be the holder, and the fence holds
  --events FILE   write all events to a new file, as JSON lines
  --report FILE   write a page for a browser
  --json, -q, --quiet: see holdfast --help

Exit codes
  0  no promise was broken          1  a promise was broken
  2  too few events to judge
  With --known-violation: 0 it was shown, 1 another promise was broken, 2 it did not happen
`

const TEXTS = new Map(
  Object.entries({
    run: RUN,
    elect: ELECT,
    ls: LS,
    inspect: INSPECT,
    break: BREAK,
    migrate: MIGRATE,
    ttl: TTL,
    fence: FENCE,
    prove: PROVE,
  }),
)

/** The help on a command, or on all of them. Throws `Usage` for a command that does not exist. */
export function helpFor(command: string | undefined): string {
  const text = command === undefined ? GENERAL : TEXTS.get(command)
  if (text === undefined) throw new Usage(`there is no command ${command}: expected ${[...TEXTS.keys()].join(', ')}`)
  return text.replace(/^(Usage:|[A-Z][a-zA-Z ]+$)/gm, heading => paint('bold', heading))
}
