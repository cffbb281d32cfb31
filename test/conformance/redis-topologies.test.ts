import { redisTopologyHarnesses } from '../harnesses/redis.ts'
import { conform } from './conform.ts'

conform(...redisTopologyHarnesses())
