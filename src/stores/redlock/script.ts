import { TURN } from '../../contract/time.ts'
import { FIRST_TURNS, SHORT_TURN } from '../quorum/queue.ts'
import { GONE, MEMORY, type Script, scriptOf } from '../redis/script.ts'

/** The number of waiters that one request reads. */
export const PAGE = 1_000

/** The shortest time in milliseconds for which a waiter that stops asking keeps its position. */
const SHORTEST_POSITION = 1_000

/** The suffixes of the keys of a queue. */
const LINE: readonly string[] = [':line', ':lapse', ':waiter']

/**
 * The script of one node. `ARGV` begins with the channel, '0', the `run_id` of the server, the time when it started, and
 * `maxTtl`. The last key is the note of the node, which says since when the node remembers.
 *
 * In renew, annotate and release, 16 digits of the token, or zeros, follow the id.
 */
export const script: Script = scriptOf({
  touches: {
    vote: [...LINE, GONE],
    release: [...LINE, GONE],
    concede: [...LINE, GONE],
    renew: [GONE],
    break: LINE,
    look: LINE,
  },
  constants: { FIRST: 6, MEMORY, PAGE, TURN, FIRST_TURNS, SHORT_TURN, SHORTEST_POSITION },
  base: ['redlock/lua/value', 'redlock/lua/quarantine', 'redlock/lua/tokens', 'redlock/lua/states'],
  rare: [
    'redlock/lua/queue',
    'redlock/lua/commit',
    'redlock/lua/renew',
    'redlock/lua/annotate',
    'redlock/lua/concede',
    'redlock/lua/break',
    'redlock/lua/look',
  ],
  verbs: ['redlock/lua/vote', 'redlock/lua/release'],
})
