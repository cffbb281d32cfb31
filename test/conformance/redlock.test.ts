import { redlockHarnesses } from '../harnesses/redlock.ts'
import { conform } from './conform.ts'

conform(...redlockHarnesses())
