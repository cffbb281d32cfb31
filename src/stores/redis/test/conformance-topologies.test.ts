import { conform } from '../../../../test/harnesses/conform.ts'
import { redisTopologyHarnesses } from '../../../../test/harnesses/redis.ts'

conform(...redisTopologyHarnesses())
