import { conform } from '../../../../test/harnesses/conform.ts'
import { redisClientHarnesses } from '../../../../test/harnesses/redis.ts'

conform(...redisClientHarnesses())
