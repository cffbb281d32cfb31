import { TURN } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import { CLAIMS } from './keys.ts'
import { GONE, type Script, scriptOf } from './script.ts'

/** The script that one server, or one node of a cluster, runs for this store. */
export const script: Script = scriptOf({
  touches: {
    acquire: [...CLAIMS, GONE],
    release: [...CLAIMS, GONE],
    renewShared: CLAIMS,
    annotateShared: CLAIMS,
    break: CLAIMS,
    inspect: CLAIMS,
    keep: CLAIMS,
  },
  constants: {
    FIRST: 4,
    TURN,
    SHORTEST_LIFETIME: positionLifetime(0),
    LONGEST_LIFETIME: positionLifetime(Number.POSITIVE_INFINITY),
  },
  base: ['redis/lua/value', 'redis/lua/tokens', 'redis/lua/alone'],
  rare: [
    'redis/lua/shared/group',
    'redis/lua/shared/queue',
    'redis/lua/shared/members',
    'redis/lua/shared/acquire',
    'redis/lua/shared/release',
    'redis/lua/shared/renew',
    'redis/lua/shared/annotate',
    'redis/lua/shared/break',
    'redis/lua/shared/inspect',
    'redis/lua/shared/keep',
  ],
  verbs: ['redis/lua/acquire', 'redis/lua/release', 'redis/lua/renew', 'redis/lua/annotate', 'redis/lua/finish'],
})
