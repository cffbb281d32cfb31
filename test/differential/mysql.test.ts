import { mysqlHarness } from '../harnesses/mysql.ts'
import { differ } from './differ.ts'

differ(mysqlHarness())
