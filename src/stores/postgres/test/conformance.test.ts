import { conform } from '../../../../test/harnesses/conform.ts'
import { postgresHarnesses } from '../../../../test/harnesses/postgres.ts'

conform(...postgresHarnesses())
