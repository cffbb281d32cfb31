import { redisHarnesses } from '../harnesses/redis.ts'
import { conform } from './conform.ts'

conform(...redisHarnesses())
