import { mysqlHarness } from '../harnesses/mysql.ts'
import { differ } from './differ.ts'

// A position is written after the read that refused the claim.
differ(mysqlHarness(), { joinsLater: true })
