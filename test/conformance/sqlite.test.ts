import { sqliteHarness } from '../harnesses/sqlite.ts'
import { conform } from './conform.ts'

conform(sqliteHarness())
