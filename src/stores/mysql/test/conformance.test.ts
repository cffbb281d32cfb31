import { conform } from '../../../../test/harnesses/conform.ts'
import { mysqlHarness } from '../../../../test/harnesses/mysql.ts'

conform(mysqlHarness())
