import { conform } from '../../../../test/harnesses/conform.ts'
import { redisHarness } from '../../../../test/harnesses/redis.ts'

conform(redisHarness())
