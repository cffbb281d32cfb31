import { conform } from '../../../../test/harnesses/conform.ts'
import { redisHarnesses } from '../../../../test/harnesses/redis.ts'

conform(...redisHarnesses())
