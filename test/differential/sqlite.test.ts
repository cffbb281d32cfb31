import { sqliteHarness } from '../harnesses/sqlite.ts'
import { differ } from './differ.ts'

differ(sqliteHarness())
