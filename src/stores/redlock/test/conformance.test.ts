import { conform } from '../../../../test/harnesses/conform.ts'
import { redlockHarnesses } from '../../../../test/harnesses/redlock.ts'

conform(...redlockHarnesses())
