import { conform } from '../../../../test/harnesses/conform.ts'
import { advisoryHarness } from '../../../../test/harnesses/postgres.ts'

conform(advisoryHarness())
