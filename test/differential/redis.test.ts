import { redisHarness, redisTopologyHarnesses } from '../harnesses/redis.ts'
import { differ } from './differ.ts'

const [cluster] = redisTopologyHarnesses()
// A waiter that is watched is kept, whatever was answered: R15 asks for that only after `kept`.
for (const harness of [redisHarness(), cluster]) if (harness) differ(harness, { keepsWatched: true })
