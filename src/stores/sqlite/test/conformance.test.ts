import { conform } from '../../../../test/harnesses/conform.ts'
import { sqliteHarness } from '../../../../test/harnesses/sqlite.ts'

conform(sqliteHarness())
