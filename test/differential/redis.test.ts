import { redisHarnesses, redisTopologyHarnesses } from '../harnesses/redis.ts'
import { differ } from './differ.ts'

const [node] = redisHarnesses()
const [cluster] = redisTopologyHarnesses()
for (const harness of [node, cluster]) if (harness) differ(harness, { keepsWatched: true })
