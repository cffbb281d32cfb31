import { redisClientHarnesses } from '../harnesses/redis.ts'
import { conform } from './conform.ts'

conform(...redisClientHarnesses())
